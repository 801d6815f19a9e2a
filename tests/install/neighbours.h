#pragma once

/// libtorch's wheel holds old copies of protobuf and fmt. A program that uses these two beside Weir
/// must get the system's headers, which fit the libraries it is linked with; ends it if not.
void CheckNeighbours();
