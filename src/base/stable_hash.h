// Hashes that are the same on every machine and in every process, as std::hash and absl's are not:
// random numbers that a seed and a name decide begin with them.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir {

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014): neighbouring numbers become unrelated
/// ones.
constexpr std::uint64_t SplitMix64(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

/// FNV-1a, 64 bits.
constexpr std::uint64_t Fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace weir
