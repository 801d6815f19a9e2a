#include "cluster/host_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "cluster/text.h"

namespace weir {
namespace {

constexpr int kPortMax = 65535;

absl::Status BadAddress(std::string_view text, const std::string& reason) {
  return absl::InvalidArgumentError(
      absl::StrCat("bad address ", Quote(text), ": ", reason,
                   " (expected host:port, IPv6 needs brackets: [::1]:port)"));
}

bool IsHostCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

bool IsHostName(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, IsHostCharacter);
}

std::optional<in6_addr> ToIpv6(std::string_view text) {
  in6_addr address;
  if (inet_pton(AF_INET6, std::string(text).c_str(), &address) != 1) return std::nullopt;
  return address;
}

// inet_pton stops at a NUL, so the characters are checked as well; a zone names an interface.
bool IsIpv6Host(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return false;
  const std::size_t percent = text.find('%');
  if (percent != std::string_view::npos && !IsHostName(text.substr(percent + 1))) return false;
  return ToIpv6(text.substr(0, percent)).has_value();
}

std::string AsciiLower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::optional<in_addr> ToIpv4(const std::string& text) {
  in_addr address;
  if (inet_pton(AF_INET, text.c_str(), &address) != 1) return std::nullopt;
  return address;
}

// An IPv4 address inside IPv6 (::ffff:a.b.c.d) reaches what the IPv4 address reaches.
std::optional<in_addr> Ipv4Of(const std::string& host) {
  if (const auto ipv4 = ToIpv4(host)) return ipv4;
  const auto ipv6 = ToIpv6(host);
  if (!ipv6 || !IN6_IS_ADDR_V4MAPPED(&*ipv6)) return std::nullopt;
  in_addr address;
  std::copy_n(ipv6->s6_addr + 12, 4, reinterpret_cast<std::uint8_t*>(&address));
  return address;
}

bool IsIpv6Loopback(const std::string& host) {
  const auto ipv6 = ToIpv6(host);
  return ipv6 && IN6_IS_ADDR_LOOPBACK(&*ipv6);
}

absl::StatusOr<HostPort> FromParts(std::string_view text, std::string_view host,
                                   std::string_view port) {
  const auto number = ParseIndex(port);
  if (port.empty()) return BadAddress(text, "the port is missing");
  if (!number || *number > kPortMax) return BadAddress(text, "the port is no number of 0..65535");
  return HostPort{std::string(host), *number};
}

absl::StatusOr<HostPort> ParseBracketed(std::string_view text) {
  const std::size_t close = text.find(']');
  if (close == std::string_view::npos) return BadAddress(text, "\"]\" is missing");
  const std::string_view host = text.substr(1, close - 1);
  if (!IsIpv6Host(host)) return BadAddress(text, "what is in brackets is no IPv6 address");
  const std::string_view rest = text.substr(close + 1);
  if (rest.empty() || rest.front() != ':') return BadAddress(text, "\":port\" must follow \"]\"");
  return FromParts(text, host, rest.substr(1));
}

}  // namespace

absl::StatusOr<HostPort> HostPort::Parse(std::string_view untrimmed) {
  const std::string_view text = Trim(untrimmed);
  if (text.empty()) return BadAddress(text, "it is empty");
  if (text.front() == '[') return ParseBracketed(text);
  if (text.find("://") != std::string_view::npos) return BadAddress(text, "it has a scheme");
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return BadAddress(text, "the port is missing");
  if (text.find(':', colon + 1) != std::string_view::npos) {
    return BadAddress(text, "it has more than one colon");
  }
  const std::string_view host = text.substr(0, colon);
  if (host.empty()) return BadAddress(text, "the host is missing");
  if (!IsHostName(host)) return BadAddress(text, "the host has a character that no host name has");
  return FromParts(text, host, text.substr(colon + 1));
}

std::string HostPort::ToString() const {
  const bool ipv6 = host.find(':') != std::string::npos;
  return ipv6 ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

bool HostPort::IsLoopback() const {
  if (IsLoopbackName() || IsIpv6Loopback(host)) return true;
  const auto ipv4 = Ipv4Of(host);
  return ipv4 && (ntohl(ipv4->s_addr) >> 24) == IN_LOOPBACKNET;
}

bool HostPort::IsLoopbackName() const {
  const std::string name = AsciiLower(host);
  // RFC 6761 reserves the whole domain; the others stand in the /etc/hosts of common systems.
  return name == "localhost" || name.ends_with(".localhost") || name == "localhost.localdomain" ||
         name == "ip6-localhost" || name == "ip6-loopback";
}

bool HostPort::IsLoopbackDefault() const {
  const auto ipv4 = Ipv4Of(host);
  return IsIpv6Loopback(host) || (ipv4 && ntohl(ipv4->s_addr) == INADDR_LOOPBACK);
}

std::string HostPort::Key() const {
  HostPort canonical{AsciiLower(host), port};
  if (const auto ipv6 = ToIpv6(host)) {
    char text[INET6_ADDRSTRLEN];
    canonical.host = inet_ntop(AF_INET6, &*ipv6, text, sizeof(text));
  }
  return canonical.ToString();
}

}  // namespace weir
