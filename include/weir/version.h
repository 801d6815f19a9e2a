#pragma once

namespace weir {

/// Of this build; shown by `weir version` and told by every task.
inline constexpr char kVersion[] = "0.1.0";

}  // namespace weir
