#include "graph/aten_probe.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "graph/merge_outputs.h"

namespace weir::graph {
namespace {

using Kind = AtenProbe::Answer::Kind;

// Inputs of stride zero cost nothing, but what is made of them does.
constexpr double kCpuBytesMax = 64.0 * 1024 * 1024;

constexpr std::uint64_t kSeed = 1;

// Convolutions have no meta kernel in C++, and are the dearest of all operators to run.
struct Convolution {
  std::string_view op;
  std::size_t spatial_dims;
};
constexpr auto kConvolutions = std::to_array<Convolution>({
    {"aten::conv1d", 1},
    {"aten::conv2d", 2},
    {"aten::conv3d", 3},
    {"aten::conv_transpose1d", 1},
    {"aten::conv_transpose2d", 2},
    {"aten::conv_transpose3d", 3},
});

// libtorch says in several ways that there is no meta kernel, or that data were asked of a tensor
// that has none.
bool BlamesMeta(std::string_view message) {
  return message.find("meta") != std::string_view::npos ||
         message.find("Meta") != std::string_view::npos ||
         message.find("not implemented") != std::string_view::npos;
}

AtenProbe::Answer Unknown() {
  return {};
}

AtenProbe::Answer Refused(absl::Status error) {
  return {.kind = Kind::kRefused, .outputs = {}, .error = std::move(error)};
}

OutputInfo Describe(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {.dtype = tensor.scalar_type(),
          .shape = tensor.sizes().vec(),
          .differentiable = tensor.requires_grad()};
}

std::set<std::int64_t> NumbersIn(const AttrMap& attrs) {
  std::set<std::int64_t> numbers;
  for (const auto& [name, value] : attrs) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) numbers.insert(*number);
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
      numbers.insert(list->begin(), list->end());
    }
  }
  return numbers;
}

void ForgetDims(std::vector<OutputInfo>& outputs) {
  for (OutputInfo& output : outputs) {
    if (output.shape) std::ranges::fill(*output.shape, -1);
  }
}

}  // namespace

AtenProbe::AtenProbe(AtenCall meta, AtenCall cpu, const std::vector<OutputInfo>& inputs)
    : meta_(std::move(meta)), cpu_(std::move(cpu)), inputs_(&inputs) {
  data_dependent_ = cpu_.op().handle().hasTag(at::Tag::dynamic_output_shape);
  dtypes_confirmed_ = std::ranges::all_of(
      inputs, [&](const OutputInfo& input) { return input.dtype == inputs.front().dtype; });
}

absl::StatusOr<AtenProbe> AtenProbe::Build(const Node& node,
                                           const std::vector<OutputInfo>& inputs) {
  WEIR_ASSIGN_OR_RETURN(AtenCall meta, AtenCall::Build(node, at::Device(at::kMeta)));
  WEIR_ASSIGN_OR_RETURN(AtenCall cpu, AtenCall::Build(node));
  AtenProbe probe(std::move(meta), std::move(cpu), inputs);
  probe.attr_numbers_ = NumbersIn(node.attrs);
  return probe;
}

AtenProbe::Answer AtenProbe::Ask(const Sizes& sizes) {
  Answer answer;
  // Even a tensor on meta cannot be made of any size.
  const absl::Status made = CatchAs(absl::StatusCode::kInvalidArgument, "its inputs",
                                    [&] { answer = AskMetaOrCpu(sizes); });
  return made.ok() ? answer : Refused(made);
}

AtenProbe::Answer AtenProbe::AskMetaOrCpu(const Sizes& sizes) {
  if (!has_meta_) return AskCpu(sizes);
  Answer meta = AskMeta(sizes);
  if (meta.kind == Kind::kOutputs) {
    trusts_meta_ = true;
    return ConfirmDtypes(sizes, std::move(meta));
  }
  if (trusts_meta_) return meta;
  // Either the inputs are wrong, or there is no meta kernel; the CPU knows, and explains it better.
  const bool blames_meta = BlamesMeta(std::string(meta.error.message()));
  Answer cpu = AskCpu(sizes);
  if (cpu.kind == Kind::kOutputs) has_meta_ = false;
  return cpu.kind == Kind::kUnknown && !blames_meta ? meta : cpu;
}

// Meta kernels check shapes, but not always that dtypes go together.
AtenProbe::Answer AtenProbe::ConfirmDtypes(const Sizes& sizes, Answer meta) {
  if (dtypes_confirmed_) return meta;
  dtypes_confirmed_ = true;
  Answer cpu = AskCpu(sizes);
  return cpu.kind == Kind::kRefused ? cpu : meta;
}

std::vector<at::Tensor> AtenProbe::MakeInputs(const Sizes& sizes, at::Device device,
                                              double value) const {
  std::vector<at::Tensor> tensors;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const OutputInfo& info = (*inputs_)[i];
    const at::TensorOptions options = at::TensorOptions(info.dtype).device(device);
    at::Tensor tensor = device.is_meta() ? at::empty(sizes[i], options)
                                         : at::full({}, value, options).expand(sizes[i]);
    if (info.differentiable) tensor.set_requires_grad(true);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

AtenProbe::Answer AtenProbe::RunWith(const AtenCall& call, const std::vector<at::Tensor>& tensors,
                                     const at::Generator* generator) const {
  const at::AutoGradMode with_gradients(true);
  std::vector<at::Tensor> outputs;
  if (absl::Status status = call.Run(tensors, generator, outputs); !status.ok()) {
    return Refused(std::move(status));
  }
  Answer answer{.kind = Kind::kOutputs, .outputs = {}, .error = {}};
  for (const at::Tensor& output : outputs) answer.outputs.push_back(Describe(output));
  return answer;
}

AtenProbe::Answer AtenProbe::AskMeta(const Sizes& sizes) {
  // A meta kernel draws nothing and wants no generator of another device.
  const at::Generator none;
  return RunWith(meta_, MakeInputs(sizes, at::kMeta, 0), &none);
}

AtenProbe::Answer AtenProbe::AskCpu(const Sizes& sizes) {
  const auto* convolution = std::ranges::find(
      kConvolutions, std::string_view(cpu_.op().schema().name()), &Convolution::op);
  if (convolution != kConvolutions.end()) return AskConvolution(sizes, convolution->spatial_dims);
  return Bytes(sizes) <= kCpuBytesMax ? RunOnCpu(sizes) : AskScaledDown(sizes);
}

double AtenProbe::Bytes(const Sizes& sizes) const {
  double bytes = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    double elements = 1;
    for (std::int64_t dim : sizes[i]) elements *= static_cast<double>(dim);
    bytes += elements * static_cast<double>(c10::elementSize((*inputs_)[i].dtype));
  }
  return bytes;
}

// Data count where a shape depends on them or an operator is choosy about them, so there are two
// tries; what differs is not known.
AtenProbe::Answer AtenProbe::RunOnCpu(const Sizes& sizes) {
  const at::Generator generator = at::detail::createCPUGenerator(kSeed);
  Answer zeros = RunWith(cpu_, MakeInputs(sizes, at::kCPU, 0), &generator);
  Answer ones = RunWith(cpu_, MakeInputs(sizes, at::kCPU, 1), &generator);
  if (zeros.kind == Kind::kOutputs && ones.kind == Kind::kOutputs) {
    MergeOutputs(ones.outputs, zeros.outputs);
  }
  Answer& answer = zeros.kind != Kind::kOutputs && ones.kind == Kind::kOutputs ? ones : zeros;
  if (data_dependent_) ForgetDims(answer.outputs);
  return answer;
}

// An empty batch goes through all checks and none of the work.
AtenProbe::Answer AtenProbe::AskConvolution(const Sizes& sizes, std::size_t spatial_dims) {
  Sizes empty = sizes;
  std::vector<std::int64_t>& input = empty[0];
  const bool batched = input.size() == spatial_dims + 2;
  if (batched) {
    input[0] = 0;
  } else if (input.size() == spatial_dims + 1) {
    input.insert(input.begin(), 0);
  } else {
    return RunOnCpu(sizes);  // which says what is wrong
  }
  Answer answer = RunOnCpu(empty);
  if (answer.kind != Kind::kOutputs) return answer;
  for (OutputInfo& output : answer.outputs) {
    if (!output.shape || output.shape->empty()) continue;
    if (batched) {
      output.shape->front() = sizes[0][0];
    } else {
      output.shape->erase(output.shape->begin());
    }
  }
  return answer;
}

namespace {

// Small sizes in the place of large ones: which, for each large size.
using Stand = std::map<std::int64_t, std::int64_t>;

Sizes Replace(const Sizes& sizes, const Stand& stand) {
  Sizes replaced = sizes;
  for (auto& dims : replaced) {
    for (std::int64_t& dim : dims) {
      if (const auto found = stand.find(dim); found != stand.end()) dim = found->second;
    }
  }
  return replaced;
}

// What an output's dimension is for the large sizes, given what it is under two ways of replacing
// them: itself when it did not change, the large size when it is each one's substitute.
std::int64_t ScaleUp(std::int64_t dim_a, std::int64_t dim_b, const Stand& a, const Stand& b) {
  if (dim_a == dim_b) return dim_a;
  for (const auto& [large, small] : a) {
    if (small == dim_a && b.at(large) == dim_b) return large;
  }
  return -1;
}

}  // namespace

// Too large to run: try with small numbers in the place of the largest, except of those that are
// also among the attributes. Works where dimensions are handed through, as in a look-up in a large
// table.
AtenProbe::Answer AtenProbe::AskScaledDown(const Sizes& sizes) {
  Stand a;
  Stand b;
  std::int64_t prime_a = 17;  // distinct, and not what the sizes of a small kernel are
  std::int64_t prime_b = 101;
  Sizes small = sizes;
  while (Bytes(small) > kCpuBytesMax) {
    std::int64_t largest = 0;
    for (const auto& dims : small) {
      for (std::int64_t dim : dims) {
        if (!attr_numbers_.contains(dim)) largest = std::max(largest, dim);
      }
    }
    if (largest <= 2 * prime_b) return Unknown();
    a[largest] = prime_a;
    b[largest] = prime_b;
    prime_a += 2;
    prime_b += 6;
    small = Replace(sizes, b);
  }
  const Answer first = RunOnCpu(Replace(sizes, a));
  const Answer second = RunOnCpu(small);
  if (first.kind != Kind::kOutputs || second.kind != Kind::kOutputs ||
      first.outputs.size() != second.outputs.size()) {
    return Unknown();
  }
  Answer answer = first;
  MergeOutputs(second.outputs, answer.outputs);
  for (std::size_t i = 0; i < answer.outputs.size(); ++i) {
    Shape& shape = answer.outputs[i].shape;
    if (!shape) continue;
    for (std::size_t d = 0; d < shape->size(); ++d) {
      (*shape)[d] = ScaleUp((*first.outputs[i].shape)[d], (*second.outputs[i].shape)[d], a, b);
    }
  }
  return answer;
}

}  // namespace weir::graph
