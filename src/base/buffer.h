// A span of bytes that keeps its storage alive: what transports read into and write from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace weir {

/// Cheap to copy; copies share the bytes. The bytes stay valid while any copy lives.
struct Buffer {
  std::shared_ptr<void> owner;
  std::byte* data = nullptr;
  std::size_t size = 0;
};

}  // namespace weir
