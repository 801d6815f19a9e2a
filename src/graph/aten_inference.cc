// InferAten: which sizes to try where dimensions are not known, and what the answers tell.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "graph/aten_probe.h"
#include "graph/merge_outputs.h"
#include "graph/shape_inference.h"

namespace weir::graph {
namespace {

using Answer = AtenProbe::Answer;
using Kind = Answer::Kind;

// Sizes given to unknown dimensions. Primes, so that a product or a sum of them is no known
// dimension by accident; and 1, where an operator often does something else.
constexpr std::int64_t kFirst = 7;
constexpr std::int64_t kSecond = 11;
constexpr std::int64_t kOne = 1;
// Sizes that many numbers divide, for operators that cut a dimension in parts.
constexpr std::int64_t kDivisible[] = {24, 120};

// Bounds of the search for sizes that fit together.
constexpr std::size_t kCandidatesMax = 16;
constexpr std::size_t kUnknownsMax = 3;
constexpr std::size_t kTriesMax = 256;
constexpr std::size_t kTriesOnCpuMax = 40;  // of an operator that has to be run in earnest
constexpr std::size_t kRanksMax = 5;        // tried for an input of unknown rank: 0 to 4

struct Dimension {
  std::size_t input = 0;
  std::size_t dim = 0;
};

// What the answers agreed on so far.
class Agreement {
 public:
  void Add(const Answer& answer) {
    if (answer.kind != Kind::kOutputs) return;
    ++count_;
    if (!outputs_) {
      outputs_ = answer.outputs;
    } else if (outputs_->size() != answer.outputs.size()) {
      sizes_differ_ = true;
    } else {
      MergeOutputs(answer.outputs, *outputs_);
    }
  }

  std::size_t count() const { return count_; }
  bool sizes_differ() const { return sizes_differ_; }
  std::optional<std::vector<OutputInfo>>& outputs() { return outputs_; }

 private:
  std::size_t count_ = 0;
  bool sizes_differ_ = false;
  std::optional<std::vector<OutputInfo>> outputs_;
};

class Inference {
 public:
  Inference(const Node& node, const std::vector<OutputInfo>& inputs, AtenProbe probe)
      : node_(node), probe_(std::move(probe)) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      sizes_.push_back(inputs[i].shape.value_or(std::vector<std::int64_t>{}));
      if (!inputs[i].shape) unknown_ranks_.push_back(i);
      any_differentiable_ = any_differentiable_ || inputs[i].differentiable;
    }
  }

  absl::StatusOr<std::vector<OutputInfo>> Run(std::optional<int> num_outputs) {
    absl::Status refused;
    if (unknown_ranks_.empty()) {
      refused = TryDims();
    } else {
      for (std::size_t rank = 0; rank < kRanksMax; ++rank) TryRank(rank);
    }
    WEIR_RETURN_IF_ERROR(refused);
    if (agreement_.sizes_differ()) return NumberUnknown();
    if (agreement_.outputs()) return *std::move(agreement_.outputs());
    if (!num_outputs) return NumberUnknown();
    const OutputInfo unknown{.dtype = at::ScalarType::Undefined,
                             .shape = std::nullopt,
                             .differentiable = any_differentiable_};
    return std::vector<OutputInfo>(static_cast<std::size_t>(*num_outputs), unknown);
  }

 private:
  absl::Status NumberUnknown() const {
    return absl::InvalidArgumentError(absl::StrCat(
        "node '", node_.name,
        "': how many tensors it returns depends on what is known only when the graph runs"));
  }

  void TryRank(std::size_t rank) {
    for (std::size_t input : unknown_ranks_) sizes_[input].assign(rank, -1);
    (void)TryDims();  // that a rank does not fit is no error
  }

  // Not OK: all dimensions are known, and the operator refuses them.
  absl::Status TryDims() {
    FindUnknown();
    if (unknown_.empty()) {
      const Answer answer = probe_.Ask(sizes_);
      agreement_.Add(answer);
      return answer.kind == Kind::kRefused ? answer.error : absl::OkStatus();
    }
    const std::size_t before = agreement_.count();
    TryAll(kFirst);
    TryAll(kSecond);
    const bool both = agreement_.count() == before + 2;
    TryAll(kOne);
    if (!both) Search(before);
    return absl::OkStatus();
  }

  void FindUnknown() {
    unknown_.clear();
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      for (std::size_t d = 0; d < sizes_[i].size(); ++d) {
        if (sizes_[i][d] < 0) unknown_.push_back({i, d});
      }
    }
  }

  void TryAll(std::int64_t size) { Try(std::vector<std::int64_t>(unknown_.size(), size)); }

  void Try(const std::vector<std::int64_t>& guess) {
    Sizes sizes = sizes_;
    for (std::size_t u = 0; u < unknown_.size(); ++u) {
      sizes[unknown_[u].input][unknown_[u].dim] = guess[u];
    }
    agreement_.Add(probe_.Ask(sizes));
  }

  // Unknown dimensions that must equal a known one, or each other but not all: sizes that occur
  // somewhere in the node are tried in all combinations.
  void Search(std::size_t before) {
    const std::vector<std::int64_t> candidates = Candidates();
    for (std::int64_t candidate : candidates) TryAll(candidate);
    if (unknown_.size() > 1 && unknown_.size() <= kUnknownsMax) TryCombinations(candidates);
    // One size that fits may do so by accident, and others give other dimensions.
    if (agreement_.count() == before + 1) ForgetDims();
  }

  std::vector<std::int64_t> Candidates() const {
    std::set<std::int64_t> found(std::begin(kDivisible), std::end(kDivisible));
    for (const auto& dims : sizes_) {
      for (std::int64_t dim : dims) {
        if (dim > 0) found.insert(dim);
      }
    }
    for (const auto& [name, value] : node_.attrs) AddNumbers(value, found);
    std::vector<std::int64_t> candidates = {kFirst, kSecond};
    for (std::int64_t size : found) {
      if (candidates.size() < kCandidatesMax) candidates.push_back(size);
    }
    return candidates;
  }

  // A number among the attributes may be a size; so may the sum of a list.
  static void AddNumbers(const AttrValue& value, std::set<std::int64_t>& found) {
    constexpr std::int64_t kSizeMax = 1 << 20;
    const auto add = [&](std::int64_t size) {
      if (size > 0 && size <= kSizeMax) found.insert(size);
    };
    if (const auto* number = std::get_if<std::int64_t>(&value)) add(*number);
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
      std::int64_t sum = 0;
      for (std::int64_t number : *list) {
        if (number < 0 || number > kSizeMax) continue;
        add(number);
        sum = std::min(sum + number, kSizeMax + 1);
      }
      add(sum);
    }
  }

  void TryCombinations(const std::vector<std::int64_t>& candidates) {
    std::vector<std::size_t> digits(unknown_.size(), 0);
    std::vector<std::int64_t> guess(unknown_.size());
    for (std::size_t tries = 0; tries < (probe_.has_meta() ? kTriesMax : kTriesOnCpuMax); ++tries) {
      for (std::size_t u = 0; u < digits.size(); ++u) guess[u] = candidates[digits[u]];
      const bool uniform = std::ranges::all_of(guess, [&](auto size) { return size == guess[0]; });
      if (!uniform) Try(guess);  // the others were tried already
      std::size_t place = 0;
      while (place < digits.size() && ++digits[place] == candidates.size()) digits[place++] = 0;
      if (place == digits.size()) return;
    }
  }

  void ForgetDims() {
    for (OutputInfo& output : *agreement_.outputs()) {
      if (output.shape) std::ranges::fill(*output.shape, -1);
    }
  }

  const Node& node_;
  AtenProbe probe_;
  Sizes sizes_;                             // -1 where unknown
  std::vector<std::size_t> unknown_ranks_;  // inputs
  std::vector<Dimension> unknown_;
  bool any_differentiable_ = false;
  Agreement agreement_;
};

bool IsUnknown(const OutputInfo& input) {
  return input.dtype == at::ScalarType::Undefined;
}

}  // namespace

absl::StatusOr<std::vector<OutputInfo>> InferAten(const Node& node,
                                                  const std::vector<OutputInfo>& inputs) {
  WEIR_ASSIGN_OR_RETURN(AtenProbe probe, AtenProbe::Build(node, inputs));
  const std::optional<int> num_outputs = probe.op().num_outputs();
  if (num_outputs && std::ranges::any_of(inputs, IsUnknown)) {
    const bool differentiable = std::ranges::any_of(inputs, &OutputInfo::differentiable);
    return std::vector<OutputInfo>(
        static_cast<std::size_t>(*num_outputs),
        {.dtype = at::ScalarType::Undefined, .shape = {}, .differentiable = differentiable});
  }
  return Inference(node, inputs, std::move(probe)).Run(num_outputs);
}

}  // namespace weir::graph
