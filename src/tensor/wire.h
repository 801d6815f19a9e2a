// Little-endian numbers in byte strings, for message bodies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace weir {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire format is written by memcpy");

/// Appends numbers and strings to a byte string.
class WireWriter {
 public:
  template <typename T>
    requires std::is_integral_v<T>
  void Number(T value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  /// 4 bytes of length, then the bytes.
  void String(const std::string& text) {
    Number(static_cast<std::uint32_t>(text.size()));
    out_.append(text);
  }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

/// Reads what WireWriter wrote. After a read beyond the end ok() is false and every value is 0 or
/// empty.
class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> in) : in_(in) {}

  template <typename T>
    requires std::is_integral_v<T>
  T Number() {
    T value = 0;
    if (in_.size() < sizeof(value)) {
      ok_ = false;
      in_ = {};
      return 0;
    }
    std::memcpy(&value, in_.data(), sizeof(value));
    in_ = in_.subspan(sizeof(value));
    return value;
  }
  std::string String() {
    const auto size = Number<std::uint32_t>();
    if (in_.size() < size) {
      ok_ = false;
      in_ = {};
      return "";
    }
    std::string text(reinterpret_cast<const char*>(in_.data()), size);
    in_ = in_.subspan(size);
    return text;
  }
  bool ok() const { return ok_; }
  /// Everything was read and nothing was missing.
  bool done() const { return ok_ && in_.empty(); }

 private:
  std::span<const std::byte> in_;
  bool ok_ = true;
};

}  // namespace weir
