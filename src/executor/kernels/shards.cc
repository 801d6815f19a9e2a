// Kernels that deal ids and values out to the slices of a variable, on the worker.
#include <ATen/Functions.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "executor/kernels/kernels.h"
#include "graph/op_registry.h"
#include "graph/row_shards.h"
#include "optim/sparse_gradient.h"
#include "store/dense.h"
#include "tensor/dtype.h"

namespace weir::executor {
namespace {

using graph::RowShards;

absl::Status OutOfRange(std::int64_t id, std::size_t position, const std::string& variable,
                        std::int64_t rows) {
  return absl::InvalidArgumentError(absl::StrCat("id ", id, " at position ", position,
                                                 " is out of range: variable \"", variable,
                                                 "\" has ", rows, " rows"));
}

std::span<std::int64_t> Numbers(const at::Tensor& tensor) {
  return {tensor.mutable_data_ptr<std::int64_t>(), static_cast<std::size_t>(tensor.numel())};
}

/// Where slices begin in a rising list of places: one more than there are slices.
std::vector<std::int64_t> Cuts(std::span<const std::int64_t> places, const RowShards& shards) {
  std::vector<std::int64_t> cuts = {0};
  for (int shard = 1; shard <= shards.count(); ++shard) {
    const auto end = std::ranges::lower_bound(places, shards.begin(shard));
    cuts.push_back(end - places.begin());
  }
  return cuts;
}

/// Makes each place of a rising list one within its slice.
void MakeLocal(std::span<std::int64_t> places, const std::vector<std::int64_t>& cuts,
               const RowShards& shards) {
  for (int shard = 0; shard < shards.count(); ++shard) {
    const auto at = static_cast<std::size_t>(shard);
    for (std::int64_t i = cuts[at]; i < cuts[at + 1]; ++i)
      places[static_cast<std::size_t>(i)] -= shards.begin(shard);
  }
}

class ShardIdsKernel final : public Kernel {
 public:
  ShardIdsKernel(RowShards shards, std::string variable)
      : shards_(std::move(shards)), variable_(std::move(variable)) {}

  absl::Status Run(NodeContext& context) const override {
    const at::Tensor& input = context.input(0).tensor;
    if (!input.defined() || input.scalar_type() != at::kLong) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the ids for variable \"", variable_, "\" are ",
          input.defined() ? DtypeName(input.scalar_type()) : "absent", " but must be int64"));
    }
    const at::Tensor ids = store::ToPlain(input);
    WEIR_ASSIGN_OR_RETURN(std::vector<Asked> asked, PlacesOf(Numbers(ids)));
    std::ranges::sort(asked, {}, &Asked::place);
    const at::Tensor positions = at::empty_like(ids, at::MemoryFormat::Contiguous);
    const at::Tensor places = Unique(asked, Numbers(positions));
    const at::Tensor rows = at::empty_like(places);
    std::ranges::transform(Numbers(places), Numbers(rows).begin(),
                           [&](std::int64_t place) { return shards_.RowAt(place); });
    const std::vector<std::int64_t> cuts = Cuts(Numbers(places), shards_);
    MakeLocal(Numbers(places), cuts, shards_);
    const auto count = static_cast<std::size_t>(shards_.count());
    for (std::size_t i = 0; i < count; ++i)
      context.SetOutput(i, {.tensor = places.slice(0, cuts[i], cuts[i + 1])});
    context.SetOutput(count, {.tensor = positions});
    context.SetOutput(count + 1, {.tensor = rows});
    return absl::OkStatus();
  }

 private:
  struct Asked {
    std::int64_t place;
    std::size_t at;  // among the ids
  };

  absl::StatusOr<std::vector<Asked>> PlacesOf(std::span<const std::int64_t> ids) const {
    std::vector<Asked> asked;
    asked.reserve(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] < 0 || ids[i] >= shards_.rows())
        return OutOfRange(ids[i], i, variable_, shards_.rows());
      asked.push_back({.place = shards_.PlaceOf(ids[i]), .at = i});
    }
    return asked;
  }

  // Each place once; fills in which of them every id is.
  static at::Tensor Unique(std::span<const Asked> asked, std::span<std::int64_t> positions) {
    std::vector<std::int64_t> places;
    for (const Asked& one : asked) {
      if (places.empty() || places.back() != one.place) places.push_back(one.place);
      positions[one.at] = static_cast<std::int64_t>(places.size()) - 1;
    }
    return at::tensor(places, at::kLong);
  }

  const RowShards shards_;
  const std::string variable_;
};

class SumRowsKernel final : public Kernel {
 public:
  enum class Combine { kSum, kLast };
  SumRowsKernel(RowShards shards, Combine combine, std::string variable)
      : shards_(std::move(shards)), combine_(combine), variable_(std::move(variable)) {}

  absl::Status Run(NodeContext& context) const override {
    std::vector<at::Tensor> ids;
    std::vector<at::Tensor> values;
    std::uint64_t version = kNoVersion;
    for (std::size_t i = 0; i < context.num_inputs(); i += 2) {
      const Value& part = context.input(i + 1);
      if (!part.tensor.defined()) continue;
      // What is computed from several versions is as stale as the oldest of them.
      version = std::min(version, part.version);
      ids.push_back(context.input(i).tensor);
      values.push_back(part.tensor);
    }
    if (values.empty()) return SetAbsent(context);
    absl::Status dealt;
    WEIR_RETURN_IF_ERROR(CatchAs(absl::StatusCode::kInvalidArgument, "dealing out rows", [&] {
      dealt = Deal(context, ids.size() == 1 ? ids[0] : at::cat(ids),
                   values.size() == 1 ? values[0] : at::cat(values), version);
    }));
    return dealt;
  }

 private:
  absl::Status SetAbsent(NodeContext& context) const {
    for (std::size_t i = 0; i < 2 * static_cast<std::size_t>(shards_.count()); ++i)
      context.SetOutput(i, {});
    return absl::OkStatus();
  }

  absl::Status Deal(NodeContext& context, const at::Tensor& ids, const at::Tensor& values,
                    std::uint64_t version) const {
    if (ids.dim() != 1 || ids.scalar_type() != at::kLong || values.dim() < 1 ||
        values.size(0) != ids.numel()) {
      return absl::InvalidArgumentError("the values are not one for each id");
    }
    const at::Tensor places = store::ToPlain(ids).clone();
    const std::span<std::int64_t> all_ids = Numbers(places);
    for (std::size_t i = 0; i < all_ids.size(); ++i) {
      std::int64_t& id = all_ids[i];
      if (id < 0 || id >= shards_.rows()) return OutOfRange(id, i, variable_, shards_.rows());
      id = shards_.PlaceOf(id);
    }
    const optim::SparseGradient parts{.indices = places, .values = store::ToPlain(values)};
    const optim::SparseGradient all =
        combine_ == Combine::kSum ? optim::SumDuplicates(parts) : optim::KeepLast(parts);
    const std::vector<std::int64_t> cuts = Cuts(Numbers(all.indices), shards_);
    MakeLocal(Numbers(all.indices), cuts, shards_);
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      context.SetOutput(2 * i, {all.indices.slice(0, cuts[i], cuts[i + 1]), version});
      context.SetOutput(2 * i + 1, {all.values.slice(0, cuts[i], cuts[i + 1]), version});
    }
    return absl::OkStatus();
  }

  const RowShards shards_;
  const Combine combine_;
  const std::string variable_;
};

/// The part of a dense value for each slice. An absent gradient has absent parts.
class SplitKernel final : public Kernel {
 public:
  SplitKernel(std::vector<std::int64_t> sizes, bool interleaved, std::int64_t axis)
      : sizes_(std::move(sizes)), interleaved_(interleaved), axis_(axis) {}

  absl::Status Run(NodeContext& context) const override {
    WEIR_RETURN_IF_ERROR(Check(context.input(0).tensor));
    return CatchAs(absl::StatusCode::kInvalidArgument, "splitting a value", [&] {
      const Value& whole = context.input(0);
      const auto count = static_cast<std::int64_t>(sizes_.size());
      std::int64_t begin = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t size = sizes_[static_cast<std::size_t>(i)];
        Value part = whole;
        if (whole.tensor.defined()) {
          part.tensor = interleaved_ ? whole.tensor.slice(axis_, i, std::nullopt, count)
                                     : whole.tensor.narrow(axis_, begin, size);
        }
        begin += size;
        context.SetOutput(static_cast<std::size_t>(i), std::move(part));
      }
    });
  }

 private:
  // More than the slices hold would be dropped in silence; graphs know no size that is fed.
  absl::Status Check(const at::Tensor& whole) const {
    const std::int64_t total = std::reduce(sizes_.begin(), sizes_.end());
    const bool fits =
        !whole.defined() || (axis_ >= 0 && axis_ < whole.dim() && whole.size(axis_) == total);
    if (fits) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "the value is ", store::DescribeTensor(whole.scalar_type(), whole.sizes()),
        ", but the slices of its variable have ", total, " in all along axis ", axis_));
  }

  const std::vector<std::int64_t> sizes_;
  const bool interleaved_;
  const std::int64_t axis_;
};

absl::Status CheckOutputs(const Node& node, const RowShards& shards, std::size_t each,
                          std::size_t more) {
  const std::size_t expected = static_cast<std::size_t>(shards.count()) * each + more;
  return CheckArity(node, graph::NumDataInputs(node), expected);
}

}  // namespace

KernelOr MakeShardIds(CompileContext&, const Node& node) {
  WEIR_ASSIGN_OR_RETURN(RowShards shards, graph::ShardsFromAttrs(node));
  WEIR_RETURN_IF_ERROR(CheckOutputs(node, shards, 1, 2));
  WEIR_ASSIGN_OR_RETURN(std::string variable, graph::GetAttr<std::string>(node, "variable"));
  return std::make_unique<ShardIdsKernel>(std::move(shards), std::move(variable));
}

KernelOr MakeSumRows(CompileContext&, const Node& node) {
  WEIR_ASSIGN_OR_RETURN(RowShards shards, graph::ShardsFromAttrs(node));
  WEIR_RETURN_IF_ERROR(CheckOutputs(node, shards, 2, 0));
  if (graph::NumDataInputs(node) % 2 != 0)
    return absl::InvalidArgumentError("takes pairs of ids and values");
  WEIR_ASSIGN_OR_RETURN(const auto combine, graph::GetAttr<std::string>(node, "combine"));
  if (combine != "sum" && combine != "last")
    return absl::InvalidArgumentError(absl::StrCat("cannot combine rows by '", combine, "'"));
  return std::make_unique<SumRowsKernel>(
      std::move(shards),
      combine == "sum" ? SumRowsKernel::Combine::kSum : SumRowsKernel::Combine::kLast,
      graph::AttrOr<std::string>(node, "variable", ""));
}

KernelOr MakeSplit(CompileContext&, const Node& node) {
  WEIR_ASSIGN_OR_RETURN(const RowShards shards, graph::ShardsFromAttrs(node));
  WEIR_RETURN_IF_ERROR(CheckOutputs(node, shards, 1, 0));
  WEIR_ASSIGN_OR_RETURN(auto sizes, graph::GetAttr<std::vector<std::int64_t>>(node, "sizes"));
  WEIR_ASSIGN_OR_RETURN(const auto layout, graph::GetAttr<std::string>(node, "layout"));
  WEIR_ASSIGN_OR_RETURN(const auto axis, graph::GetAttr<std::int64_t>(node, "axis"));
  return std::make_unique<SplitKernel>(std::move(sizes), layout == "mod", axis);
}

}  // namespace weir::executor
