// InferAten: which sizes to try where dimensions are not known, and what the answers tell.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
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

// Bounds of the search for sizes that fit together. A failed try costs 50 us, an exception's price.
constexpr std::size_t kCandidatesMax = 16;
constexpr std::size_t kCandidatesOfTwo = 12;  // tried in all combinations of two
constexpr std::size_t kCandidatesOfThree = 6;
constexpr std::size_t kCandidatesOfMany = 8;
constexpr std::size_t kRandomTries = 128;
constexpr std::int64_t kSizeMax = 1 << 20;
constexpr std::size_t kRanksMax = 5;  // tried for an input of unknown rank: 0 to 4

// A size for each unknown dimension.
using Guess = std::vector<std::int64_t>;

struct Dimension {
  std::size_t input = 0;
  std::size_t dim = 0;
};

// What the answers agreed on so far.
class Agreement {
 public:
  void Add(const Answer& answer) {
    if (answer.kind != Kind::kOutputs) return;
    if (!outputs_) {
      outputs_ = answer.outputs;
    } else if (outputs_->size() != answer.outputs.size()) {
      sizes_differ_ = true;
    } else {
      MergeOutputs(answer.outputs, *outputs_);
    }
  }

  bool sizes_differ() const { return sizes_differ_; }
  std::optional<std::vector<OutputInfo>>& outputs() { return outputs_; }

 private:
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
    tried_.clear();
    fits_.clear();
    TryAll(kFirst);
    TryAll(kSecond);
    const bool any_size_fits = fits_.size() == 2;
    TryAll(kOne);
    const Guess sizes = any_size_fits ? Guess{kFirst, kSecond} : Candidates();
    if (!any_size_fits) Search(sizes);
    if (fits_.empty()) return absl::OkStatus();
    VaryEach(Guess(fits_.front()), sizes);
    VaryEach(Guess(fits_.back()), sizes);
    // One fit may be an accident, and others give other dimensions.
    if (fits_.size() == 1) ForgetDims();
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

  void TryAll(std::int64_t size) { Try(Guess(unknown_.size(), size)); }

  void Try(const Guess& guess) {
    if (!tried_.insert(guess).second) return;
    Sizes sizes = sizes_;
    for (std::size_t u = 0; u < unknown_.size(); ++u) {
      sizes[unknown_[u].input][unknown_[u].dim] = guess[u];
    }
    const Answer answer = probe_.Ask(sizes);
    agreement_.Add(answer);
    if (answer.kind == Kind::kOutputs) fits_.push_back(guess);
  }

  // What holds for one fit need not for another: a kernel as large as its image leaves one pixel.
  // So each unknown dimension gets other sizes, alone and with each other one that may be bound to
  // it.
  void VaryEach(const Guess& fit, const Guess& candidates) {
    for (std::size_t u = 0; u < fit.size(); ++u) {
      for (std::size_t v = u; v < fit.size(); ++v) {
        if (fit[u] == fit[v]) VaryBoth(fit, u, v, candidates);
      }
    }
  }

  void VaryBoth(Guess guess, std::size_t u, std::size_t v, const Guess& candidates) {
    for (std::int64_t size : candidates) {
      guess[u] = size;
      guess[v] = size;
      Try(guess);
    }
  }

  // Unknown dimensions that must equal a known one, or each other but not all: sizes that occur
  // somewhere in the node are tried in combinations.
  void Search(const Guess& candidates) {
    for (std::int64_t candidate : candidates) TryAll(candidate);
    const std::size_t unknowns = unknown_.size();
    if (unknowns == 2) TryCombinations(candidates, kCandidatesOfTwo);
    if (unknowns == 3) TryCombinations(candidates, kCandidatesOfThree);
    if (unknowns > 3) TryAtRandom(candidates);
  }

  // The likeliest first, each once.
  Guess Candidates() const {
    Guess candidates = {kFirst, kSecond};
    const auto add = [&](std::int64_t size) {
      if (size > 0 && size <= kSizeMax && std::ranges::find(candidates, size) == candidates.end()) {
        candidates.push_back(size);
      }
    };
    for (const auto& dims : sizes_) std::ranges::for_each(dims, add);
    for (const auto& [name, value] : node_.attrs) {
      if (const auto* number = std::get_if<std::int64_t>(&value)) add(*number);
      if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
        std::ranges::for_each(*list, add);
        add(SumOf(*list));
      }
    }
    std::ranges::for_each(kDivisible, add);
    if (candidates.size() > kCandidatesMax) candidates.resize(kCandidatesMax);
    return candidates;
  }

  // Of parts that a dimension is cut in.
  static std::int64_t SumOf(const std::vector<std::int64_t>& parts) {
    std::int64_t sum = 0;
    for (std::int64_t part : parts) {
      if (part < 0 || part > kSizeMax || sum > kSizeMax) return 0;
      sum += part;
    }
    return sum;
  }

  void TryCombinations(Guess candidates, std::size_t most) {
    if (!probe_.has_meta()) most /= 2;  // each try is a run in earnest
    if (candidates.size() > most) candidates.resize(most);
    std::vector<std::size_t> digits(unknown_.size(), 0);
    Guess guess(unknown_.size());
    while (true) {
      for (std::size_t u = 0; u < digits.size(); ++u) guess[u] = candidates[digits[u]];
      Try(guess);
      std::size_t place = 0;
      while (place < digits.size() && ++digits[place] == candidates.size()) digits[place++] = 0;
      if (place == digits.size()) return;
    }
  }

  void TryAtRandom(const Guess& candidates) {
    std::minstd_rand random;  // the same every time
    const std::size_t most = std::min(candidates.size(), kCandidatesOfMany);
    Guess guess(unknown_.size());
    for (std::size_t t = 0; t < kRandomTries; ++t) {
      for (std::int64_t& size : guess) size = candidates[(random() / 64) % most];
      Try(guess);
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
  std::set<Guess> tried_;
  std::vector<Guess> fits_;  // of those tried
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
