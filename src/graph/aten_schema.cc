#include "graph/aten_schema.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "graph/aten_purity.h"

namespace weir::graph {
namespace {

std::vector<std::string> OverloadsOf(const std::string& name) {
  std::vector<std::string> overloads;
  for (const c10::OperatorName& known : c10::Dispatcher::singleton().getAllOpNames()) {
    if (known.name == name) overloads.push_back(absl::StrCat("'", known.overload_name, "'"));
  }
  std::ranges::sort(overloads);
  return overloads;
}

absl::Status NotFound(const std::string& name, const std::string& overload) {
  if (name.find("::") == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("operator '", name, "' has no namespace; did you mean 'aten::", name, "'?"));
  }
  const std::vector<std::string> overloads = OverloadsOf(name);
  if (overloads.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("unknown operator '", name, "'"));
  }
  return absl::InvalidArgumentError(absl::StrCat("operator '", name, "' has no overload '",
                                                 overload, "'; it has ",
                                                 absl::StrJoin(overloads, ", ")));
}

}  // namespace

absl::StatusOr<AtenOperator> AtenOperator::Find(const std::string& name,
                                                const std::string& overload) {
  const auto handle = c10::Dispatcher::singleton().findSchema({name, overload});
  if (!handle.has_value()) return NotFound(name, overload);
  WEIR_RETURN_IF_ERROR(CheckPure(*handle));
  return AtenOperator(*handle);
}

std::string AtenOperator::SchemaText() const {
  std::ostringstream text;
  text << schema();
  return text.str();
}

std::optional<int> AtenOperator::num_outputs() const {
  const auto& returns = schema().returns();
  const bool fixed = std::ranges::all_of(returns, [](const c10::Argument& output) {
    return output.type()->kind() == c10::TypeKind::TensorType;
  });
  if (!fixed) return std::nullopt;
  return static_cast<int>(returns.size());
}

}  // namespace weir::graph
