// Asks an operator what it makes of inputs of given sizes, without their data.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/aten_schema.h"
#include "weir/graph.h"

namespace weir::graph {

/// A size for every dimension of every input.
using Sizes = std::vector<std::vector<std::int64_t>>;

/// One Aten node, ready to be tried with different sizes. Not thread-safe.
class AtenProbe {
 public:
  struct Answer {
    enum class Kind {
      kOutputs,  // this is what it gives
      kRefused,  // it does not take such inputs
      kUnknown,  // it could not be asked: no meta kernel, and too large to run
    };
    Kind kind = Kind::kUnknown;
    std::vector<OutputInfo> outputs;  // kOutputs; a dimension that depends on data is -1
    absl::Status error;               // kRefused: with libtorch's message
  };

  /// `inputs` must outlive the probe; only dtype and differentiability count here.
  static absl::StatusOr<AtenProbe> Build(const Node& node, const std::vector<OutputInfo>& inputs);

  Answer Ask(const Sizes& sizes);

  const AtenOperator& op() const { return cpu_.op(); }
  /// False once it has turned out that there is no meta kernel.
  bool has_meta() const { return has_meta_; }

 private:
  AtenProbe(AtenCall meta, AtenCall cpu, const std::vector<OutputInfo>& inputs);

  Answer AskMetaOrCpu(const Sizes& sizes);
  Answer ConfirmDtypes(const Sizes& sizes, Answer meta);
  Answer AskMeta(const Sizes& sizes);
  Answer AskCpu(const Sizes& sizes);
  Answer AskConvolution(const Sizes& sizes, std::size_t spatial_dims);
  Answer AskScaledDown(const Sizes& sizes);
  Answer RunOnCpu(const Sizes& sizes);
  Answer RunWith(const AtenCall& call, const std::vector<at::Tensor>& tensors,
                 const at::Generator* generator) const;
  std::vector<at::Tensor> MakeInputs(const Sizes& sizes, at::Device device, double value) const;
  double Bytes(const Sizes& sizes) const;

  AtenCall meta_;
  AtenCall cpu_;
  const std::vector<OutputInfo>* inputs_;
  std::set<std::int64_t> attr_numbers_;
  bool has_meta_ = true;           // no sign yet that there is no meta kernel
  bool trusts_meta_ = false;       // there is one: what it refuses is wrong
  bool dtypes_confirmed_ = false;  // the CPU takes them together
  bool data_dependent_ = false;    // the shapes of its outputs depend on its inputs' data
};

}  // namespace weir::graph
