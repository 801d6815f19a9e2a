// The address of a task as users write it.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace weir {

struct HostPort {
  std::string host;  // without brackets
  int port = 0;

  /// "host:port" or "[v6]:port"; outer blanks are trimmed. InvalidArgument quotes the text and says
  /// how an address is written. Port 0 is accepted here, for a server that lets the system pick
  /// one; a fixed cluster list refuses it. The host is kept as it is written; nothing is looked up.
  static absl::StatusOr<HostPort> Parse(std::string_view text);
  /// An IPv6 host is printed in brackets.
  std::string ToString() const;
  /// localhost and its like, 127.0.0.0/8, ::1 in any spelling. By the text alone: a host name that
  /// merely resolves to such an address is not one.
  bool IsLoopback() const;
  /// True for loopback names (localhost), which are never the name of another machine; false for
  /// loopback addresses in numbers.
  bool IsLoopbackName() const;
  /// True for 127.0.0.1 and ::1, to which a loopback name resolves.
  bool IsLoopbackDefault() const;
  /// Equal for different spellings of one address: letter case, forms of an IPv6 address.
  std::string Key() const;
  bool operator==(const HostPort&) const = default;
};

}  // namespace weir
