#include "graph/op_rules.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace weir::graph {
namespace {

template <typename T, std::size_t I = 0>
constexpr std::size_t TypeIndex() {
  if constexpr (std::is_same_v<std::variant_alternative_t<I, AttrValue>, T>) {
    return I;
  } else {
    return TypeIndex<T, I + 1>();
  }
}

constexpr std::size_t kBool = TypeIndex<bool>();
constexpr std::size_t kInt = TypeIndex<std::int64_t>();
constexpr std::size_t kFloat = TypeIndex<double>();
constexpr std::size_t kString = TypeIndex<std::string>();
constexpr std::size_t kDtype = TypeIndex<at::ScalarType>();
constexpr std::size_t kTensor = TypeIndex<at::Tensor>();
constexpr std::size_t kInts = TypeIndex<std::vector<std::int64_t>>();

constexpr std::array<std::string_view, std::variant_size_v<AttrValue>> kTypeNames = {
    "None",   "bool",         "int",         "float",         "string",        "dtype",
    "tensor", "list of bool", "list of int", "list of float", "list of string"};

constexpr AttrRule kPlaceholder[] = {{"dtype", kDtype}, {"shape", kInts}};
constexpr AttrRule kConst[] = {{"value", kTensor}};
constexpr AttrRule kVariable[] = {{"dtype", kDtype}, {"shape", kInts}, {"initializer", kInt}};
constexpr AttrRule kAten[] = {{"operator", kString}, {"overload", kString}};
constexpr AttrRule kFunction[] = {{"handle", kInt}};
constexpr AttrRule kApply[] = {{"rule", kString}};
constexpr AttrRule kClip[] = {{"by", kString}, {"bound", kFloat}};
constexpr AttrRule kWeightDecay[] = {{"rate", kFloat}};
constexpr AttrRule kSumRows[] = {{"sizes", kInts}, {"layout", kString}, {"combine", kString}};
constexpr AttrRule kShardIds[] = {{"sizes", kInts}, {"layout", kString}, {"variable", kString}};
constexpr AttrRule kSplit[] = {{"sizes", kInts}, {"layout", kString}, {"axis", kInt}};
constexpr AttrRule kTicket[] = {{"limit", kInt}};
constexpr AttrRule kIndex[] = {{"index", kInt}};
constexpr AttrRule kSend[] = {{"edge", kInt}, {"to", kString}, {"control", kBool}};
constexpr AttrRule kRecv[] = {{"edge", kInt}, {"from", kString}, {"control", kBool}};
constexpr AttrRule kBackward[] = {{"num_ys", kInt}, {"num_xs", kInt}, {"segment", kInt}};

constexpr int kAny = OpRule::kAny;
constexpr auto kRules = std::to_array<OpRule>({
    {"Placeholder", 0, 0, 1, kPlaceholder},
    {"Const", 0, 0, 1, kConst},
    {"Variable", 0, 0, 1, kVariable},
    {"Read", 1, 1, 1, {}},
    {"Assign", 2, 2, 0, {}},
    {"AssignAdd", 2, 2, 0, {}},
    {"IsInitialized", 1, 1, 1, {}},
    {"Lookup", 2, 2, 3, {}},
    {"Gather", 2, 2, 1, {}},
    {"ScatterAdd", 3, 3, 0, {}},
    {"ScatterUpdate", 3, 3, 0, {}},
    {"SumRows", 2, kAny, kAny, kSumRows},
    {"AddRows", 3, 3, 1, {}},
    {"ShardIds", 1, 1, kAny, kShardIds},
    {"Split", 1, 1, kAny, kSplit},
    {"Identity", 1, 1, 1, {}},
    {"Group", 0, 0, 0, {}},
    {"Aten", 0, kAny, kAny, kAten},
    {"Function", 0, kAny, kAny, kFunction},
    {"Gradients", 2, kAny, kAny, {}},
    {"Apply", 2, 4, 0, kApply},
    {"Average", 2, 3, 0, kApply},
    {"Ticket", 1, 1, 1, kTicket},
    {"ClipGradients", 1, kAny, kAny, kClip},
    {"AddWeightDecay", 2, 2, 1, kWeightDecay},
    {"CompleteStep", 1, 1, 0, {}},
    {"Feed", 0, 0, 1, kIndex},
    {"Fetch", 1, 1, 0, kIndex},
    {"Send", 0, 1, 0, kSend},
    {"Recv", 0, 0, kAny, kRecv},
    {"Backward", 2, kAny, kAny, kBackward},
    {"SumGradients", 0, kAny, 1, {}},  // a sum of nothing is absent
});

}  // namespace

const OpRule* FindRule(std::string_view op) {
  const auto* found = std::ranges::find(kRules, op, &OpRule::op);
  return found == kRules.end() ? nullptr : found;
}

std::string_view AttrTypeNameOf(std::size_t type) {
  return type < kTypeNames.size() ? kTypeNames[type] : "unknown type";
}

}  // namespace weir::graph
