#include "optim/hyperparameters.h"

#include <algorithm>

#include "absl/strings/str_join.h"

namespace weir::optim {

absl::Status CheckHyperparameters(const OptimizerSpec& spec, const char* const* names,
                                  std::size_t count) {
  const char* const* const end = names + count;
  for (const auto& [name, value] : spec.hyperparameters) {
    if (std::find(names, end, name) == end) {
      return absl::InvalidArgumentError(absl::StrCat(spec.rule, " has no hyperparameter \"", name,
                                                     "\"; it has ",
                                                     absl::StrJoin(names, end, ", ")));
    }
    if (!std::isfinite(value)) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " = ", value, " of ", spec.rule, " is not finite"));
    }
  }
  for (const char* const* name = names; name != end; ++name) {
    if (!spec.hyperparameters.contains(*name)) {
      return absl::InvalidArgumentError(absl::StrCat(spec.rule, " needs ", *name));
    }
  }
  return absl::OkStatus();
}

}  // namespace weir::optim
