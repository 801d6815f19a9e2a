// Random images in MNIST's clothes, for programs that only have to run.
#pragma once

#include <cstdint>
#include <filesystem>

namespace weir::testing_process {

/// Writes the four files: `train` and `test` random images of 28 x 28 bytes with labels 0..9.
void WriteFakeMnist(const std::filesystem::path& folder, std::uint32_t train, std::uint32_t test);

}  // namespace weir::testing_process
