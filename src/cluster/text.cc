#include "cluster/text.h"

#include <algorithm>
#include <charconv>

namespace weir {
namespace {

constexpr std::size_t kQuotedBytesMax = 200;

// The locale must not decide what a name is, so <cctype> is not used.
bool IsAlpha(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
bool IsBlank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

void AppendEscaped(std::string& out, char c) {
  constexpr char kHex[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  if (c == '"' || c == '\\') {
    out += {'\\', c};
  } else if (byte >= 0x20 && byte < 0x7f) {
    out += c;
  } else {
    out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
  }
}

}  // namespace

bool IsName(std::string_view text) {
  return !text.empty() && IsAlpha(text.front()) &&
         std::ranges::all_of(text, [](char c) { return IsAlpha(c) || IsDigit(c) || c == '_'; });
}

std::optional<int> ParseIndex(std::string_view text) {
  // from_chars takes a minus sign, which no index has.
  if (text.empty() || !IsDigit(text.front())) return std::nullopt;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

std::string Quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, kQuotedBytesMax)) AppendEscaped(out, c);
  if (text.size() > kQuotedBytesMax) out += "...";
  return out + '"';
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace weir
