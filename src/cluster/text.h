// The small lexical rules that device names, addresses and cluster specs share.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

/// [A-Za-z][A-Za-z0-9_]*, the original's rule for the names of jobs and device types.
bool IsName(std::string_view text);

/// Decimal digits and nothing else, from 0 to INT_MAX; nullopt for anything else, a sign included.
std::optional<int> ParseIndex(std::string_view text);

/// `text` without the blanks around it. The result points into `text`.
std::string_view Trim(std::string_view text);

/// `text` in double quotes for a message: bytes that are not printable ASCII are written as \xNN, a
/// long text is cut. Whatever bytes came in, the result is one short line.
std::string Quote(std::string_view text);

/// The parts of `text` between separators; always at least one, which may be empty.
std::vector<std::string_view> Split(std::string_view text, char separator);

}  // namespace weir
