#include "store/variable.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "store/counter.h"
#include "store/dense.h"
#include "store/hogwild.h"
#include "store/run_initializer.h"
#include "tensor/dtype.h"

namespace weir::store {
namespace {

VariableDef WithoutValue(VariableDef def) {
  def.initializer.value.reset();
  return def;
}

}  // namespace

Variable::Variable(VariableDef def)
    : def_(WithoutValue(def)),
      bytes_(TensorBytes(def.initializer.dtype, def.initializer.shape).value_or(0)),
      is_counter_(IsCounter(def.initializer)),
      initial_value_(def.initializer.value) {}

absl::Status Variable::Initialize() {
  if (initialized()) return absl::OkStatus();
  {
    MutexLock lock(init_mutex_);
    if (initialized()) return absl::OkStatus();
    Initializer initializer = def_.initializer;
    initializer.value = initial_value_;
    WEIR_ASSIGN_OR_RETURN(
        at::Tensor value,
        RunInitializer(initializer, def_.seed, def_.drawn_as.empty() ? def_.name : def_.drawn_as));
    Adopt(std::move(value));
  }
  SetTickets();
  return absl::OkStatus();
}

absl::StatusOr<Snapshot> Variable::Read() const {
  WEIR_RETURN_IF_ERROR(CheckInitialized());
  if (def_.consistent_reads || is_counter_) return ReadCopy();
  const std::uint64_t at_least = version();
  return Snapshot{buffer_, at_least};
}

absl::StatusOr<Snapshot> Variable::ReadCopy() const {
  WEIR_RETURN_IF_ERROR(CheckInitialized());
  WEIR_ASSIGN_OR_RETURN(at::Tensor copy,
                        AllocateTensor(def_.initializer.shape, def_.initializer.dtype, def_.name));
  const std::uint64_t at_least = CopyOut(copy);
  return Snapshot{std::move(copy), at_least};
}

absl::StatusOr<std::uint64_t> Variable::ReadInto(const at::Tensor& to) const {
  WEIR_RETURN_IF_ERROR(CheckInitialized());
  WEIR_RETURN_IF_ERROR(CheckLike(to, "destination of a read"));
  if (!to.is_contiguous()) {
    return absl::InvalidArgumentError(
        absl::StrCat("destination of a read of variable \"", def_.name, "\" is not contiguous"));
  }
  return CopyOut(to);
}

absl::Status Variable::Assign(const at::Tensor& value) {
  WEIR_RETURN_IF_ERROR(CheckLike(value, "value assigned"));
  const at::Tensor plain = ToPlain(value);
  WEIR_ASSIGN_OR_RETURN(const bool adopted, AdoptIfFirst(plain));
  if (!adopted) {
    CountLock();
    MutexLock lock(update_mutex_);
    if (is_counter_) {
      StoreCounter(buffer_, LoadCounter(plain));
    } else if (!plain.is_alias_of(buffer_)) {
      HogwildCopy(buffer_.mutable_data_ptr(), plain.const_data_ptr(), bytes_);
    }
    CountVersion();
  }
  SetTickets();
  return absl::OkStatus();
}

absl::StatusOr<std::uint64_t> Variable::AssignAdd(const at::Tensor& value, bool use_locking) {
  WEIR_RETURN_IF_ERROR(CheckLike(value, "value added"));
  WEIR_RETURN_IF_ERROR(CheckCanAdd());
  const at::Tensor plain = ToPlain(value);
  return Update(use_locking, [&](const at::Tensor& buffer) {
    if (is_counter_) {
      AddToCounter(buffer, LoadCounter(plain));
    } else {
      // On an alias with a version counter of its own: autograd would otherwise refuse to go back
      // through whatever was computed from this buffer before the update.
      buffer.variable_data().add_(plain);
    }
  });
}

absl::StatusOr<at::Tensor> Variable::Slot(const std::string& name, const Initializer& initial) {
  const std::string full_name = absl::StrCat(def_.name, "/", name);
  MutexLock lock(slots_mutex_);
  if (const auto found = slots_.find(name); found != slots_.end()) {
    WEIR_RETURN_IF_ERROR(CheckDense(found->second, initial.dtype, initial.shape,
                                    absl::StrCat("slot \"", full_name, "\"")));
    return found->second;
  }
  WEIR_ASSIGN_OR_RETURN(at::Tensor slot, RunInitializer(initial, def_.seed, full_name));
  slots_.emplace(name, slot);
  return slot;
}

std::map<std::string, at::Tensor> Variable::slots() const {
  MutexLock lock(slots_mutex_);
  return slots_;
}

absl::Status Variable::CheckInitialized() const {
  if (initialized()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("Attempting to use uninitialized value ", def_.name));
}

absl::Status Variable::CheckLike(const at::Tensor& value, const char* what) const {
  return CheckDense(value, def_.initializer.dtype, def_.initializer.shape,
                    absl::StrCat(what, " of variable \"", def_.name, "\""));
}

absl::Status Variable::CheckCanAdd() const {
  if (def_.initializer.dtype != at::kBool) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cannot add to variable \"", def_.name, "\" of dtype bool"));
}

void Variable::Adopt(at::Tensor value) {
  buffer_ = std::move(value);
  initial_value_.reset();
  initialized_.store(true, std::memory_order_release);
}

absl::StatusOr<bool> Variable::AdoptIfFirst(const at::Tensor& plain) {
  if (initialized()) return false;
  MutexLock lock(init_mutex_);
  if (initialized()) return false;
  WEIR_ASSIGN_OR_RETURN(at::Tensor buffer,
                        AllocateTensor(def_.initializer.shape, def_.initializer.dtype, def_.name));
  HogwildCopy(buffer.mutable_data_ptr(), plain.const_data_ptr(), bytes_);
  CountVersion();
  Adopt(std::move(buffer));
  return true;
}

// The version is loaded first: what is copied afterwards holds at least these updates.
std::uint64_t Variable::CopyOut(const at::Tensor& to) const {
  const auto copy = [&] {
    const std::uint64_t at_least = version();
    if (is_counter_) {
      StoreCounter(to, LoadCounter(buffer_));
      return at_least;
    }
    const auto size = static_cast<std::int64_t>(buffer_.element_size());
    const auto* from = static_cast<const char*>(buffer_.const_data_ptr());
    auto* target = static_cast<char*>(to.mutable_data_ptr());
    ForEachBlock(0, buffer_.numel(), Pass::kRead, block_hook_,
                 [&](std::int64_t begin, std::int64_t end) {
                   HogwildCopy(target + begin * size, from + begin * size,
                               static_cast<std::size_t>((end - begin) * size));
                 });
    return at_least;
  };
  return Consistently(copy);
}

void Variable::SetTickets() {
  if (!is_counter_) return;
  tickets_.SetCompleted(
      static_cast<std::uint64_t>(std::max(std::int64_t{0}, LoadCounter(buffer_))));
}

}  // namespace weir::store
