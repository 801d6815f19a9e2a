#include "store/variable_store.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "store/dense.h"
#include "tensor/dtype.h"

namespace weir::store {
namespace {

// An error message names this many variables at most.
constexpr std::size_t kNamesInMessage = 10;

std::string Describe(const VariableDef& def) {
  return absl::StrCat(DescribeTensor(def.initializer.dtype, def.initializer.shape),
                      def.part.empty() ? "" : ", ", def.part);
}

absl::Status CheckDef(const VariableDef& def) {
  const std::string context = absl::StrCat("variable \"", def.name, "\"");
  if (def.name.empty()) return absl::InvalidArgumentError("a variable without a name");
  if (DtypeCode(def.initializer.dtype) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(context, " cannot have dtype ", DtypeName(def.initializer.dtype)));
  }
  return Annotate(TensorBytes(def.initializer.dtype, def.initializer.shape).status(), context);
}

/// What the first asker did not ask for was never kept: it cannot be promised to a later one.
absl::Status CheckGuarantees(const VariableDef& existing, const VariableDef& asked) {
  const char* lacks = nullptr;
  if (asked.use_locking && !existing.use_locking) lacks = "use_locking";
  if (asked.consistent_reads && !existing.consistent_reads) lacks = "consistent_reads";
  if (lacks == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("variable \"", asked.name, "\" of container \"",
                                                 asked.container, "\" was made without ", lacks,
                                                 ", which is asked for now"));
}

absl::Status CheckAgrees(const VariableDef& existing, const VariableDef& asked) {
  if (existing.initializer.dtype == asked.initializer.dtype &&
      existing.initializer.shape == asked.initializer.shape && existing.part == asked.part) {
    return CheckGuarantees(existing, asked);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("variable \"", asked.name, "\" of container \"", asked.container,
                   "\" exists as ", Describe(existing), ", but is asked for as ", Describe(asked)));
}

}  // namespace

absl::StatusOr<std::shared_ptr<Variable>> VariableStore::Ensure(const VariableDef& def) {
  WEIR_RETURN_IF_ERROR(CheckDef(def));
  MutexLock lock(mutex_);
  std::shared_ptr<Variable>& variable = variables_[{def.container, def.name}];
  if (variable == nullptr) {
    variable = std::make_shared<Variable>(def);
  } else {
    WEIR_RETURN_IF_ERROR(CheckAgrees(variable->def(), def));
  }
  return variable;
}

absl::StatusOr<std::shared_ptr<Variable>> VariableStore::Find(const std::string& container,
                                                              const std::string& name) const {
  MutexLock lock(mutex_);
  const auto found = variables_.find({container, name});
  if (found != variables_.end()) return found->second;
  std::vector<std::string> names;
  std::size_t others = 0;
  for (const auto& [key, variable] : variables_) {
    if (key.first != container) continue;
    names.size() < kNamesInMessage ? names.push_back(key.second) : void(++others);
  }
  return absl::NotFoundError(
      absl::StrCat("no variable \"", name, "\" in container \"", container, "\", which holds ",
                   names.empty() ? "nothing" : absl::StrJoin(names, ", "),
                   others > 0 ? absl::StrCat(" and ", others, " more") : ""));
}

void VariableStore::Reset(const std::vector<std::string>& containers) {
  // Destroyed after the lock is let go: the last holder of a variable answers its waiters.
  std::vector<std::shared_ptr<Variable>> forgotten;
  MutexLock lock(mutex_);
  for (auto it = variables_.begin(); it != variables_.end();) {
    if (std::find(containers.begin(), containers.end(), it->first.first) != containers.end()) {
      forgotten.push_back(std::move(it->second));
      it = variables_.erase(it);
    } else {
      ++it;
    }
  }
}

std::vector<std::shared_ptr<Variable>> VariableStore::All() const {
  MutexLock lock(mutex_);
  std::vector<std::shared_ptr<Variable>> all;
  all.reserve(variables_.size());
  for (const auto& [key, variable] : variables_) all.push_back(variable);
  return all;
}

}  // namespace weir::store
