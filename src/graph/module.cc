#include "weir/module.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <functional>
#include <span>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "graph/module_call.h"
#include "graph/module_inference.h"
#include "graph/module_replicas.h"

namespace weir {

struct Module::Shared {
  Graph* graph = nullptr;
  std::shared_ptr<torch::nn::Module> module;
  ModuleForward forward;
  std::string name;
  std::vector<std::string> names = {};   // of parameters, then buffers
  std::vector<at::Tensor> initial = {};  // values of the variables, shared with the graph
  std::vector<Variable> variables = {};
  std::size_t num_parameters = 0;
  std::vector<Operation> updates = {};
};

namespace {

using graph::BufferChange;
using graph::ModuleCall;
using graph::ModuleReplicas;

std::vector<std::pair<std::string, at::Tensor>> StateOf(const torch::nn::Module& module,
                                                        std::size_t& num_parameters) {
  std::vector<std::pair<std::string, at::Tensor>> state;
  for (const auto& item : module.named_parameters()) state.emplace_back(item.key(), item.value());
  num_parameters = state.size();
  for (const auto& item : module.named_buffers()) state.emplace_back(item.key(), item.value());
  return state;
}

// The bytes between a tensor's first element and the end of its last one.
struct Extent {
  const char* begin = nullptr;
  const char* end = nullptr;
  const std::string* name = nullptr;
};

Extent ExtentOf(const std::string& name, const at::Tensor& tensor) {
  std::int64_t last = 0;
  for (std::int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
  const auto* begin = static_cast<const char*>(tensor.const_data_ptr());
  const auto bytes = static_cast<std::int64_t>(tensor.element_size());
  return {.begin = begin, .end = begin + (last + 1) * bytes, .name = &name};
}

// A copy of a module ties nothing together that the original had tied. Views that take turns in one
// memory, such as the columns of a matrix, are refused though they may have no element in common.
absl::Status CheckNotTied(const std::vector<std::pair<std::string, at::Tensor>>& state) {
  std::vector<Extent> extents;
  for (const auto& [name, tensor] : state)
    if (tensor.numel() > 0) extents.push_back(ExtentOf(name, tensor));
  std::ranges::stable_sort(extents, std::ranges::less(), &Extent::begin);
  Extent last;
  for (const Extent& extent : extents) {
    if (last.name != nullptr && extent.begin < last.end) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", *last.name, "' and '", *extent.name,
                       "' share their memory: give one a clone() of its own"));
    }
    last = extent;
  }
  return absl::OkStatus();
}

absl::Status CheckCloneable(const torch::nn::Module& module) {
  return CatchAs(absl::StatusCode::kInvalidArgument,
                 "cannot be cloned; derive its class from torch::nn::Cloneable",
                 [&] { graph::CopyOf(module); });
}

// That the module still has the tensors that variables were made of.
absl::Status CheckUnchanged(const torch::nn::Module& module, const std::vector<std::string>& names,
                            const std::vector<at::Tensor>& values) {
  std::size_t num_parameters = 0;
  const auto state = StateOf(module, num_parameters);
  const auto is_same = [](const auto& now, const auto& name, const at::Tensor& value) {
    return now.first == name && now.second.sizes() == value.sizes();
  };
  for (std::size_t i = 0; i < std::max(state.size(), names.size()); ++i) {
    if (i < state.size() && i < names.size() && is_same(state[i], names[i], values[i])) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("'", i < names.size() ? names[i] : state[i].first,
                     "' has been added, taken away or given another shape since the variables were "
                     "made: make a weir::Module of the module as it is now"));
  }
  return absl::OkStatus();
}

// The module as it is at a call, for good: what its owner does to it later is not for the steps to
// see. Its parameters take no memory, since they are the graph's own initial values.
absl::StatusOr<std::shared_ptr<const torch::nn::Module>> Snapshot(
    const torch::nn::Module& module, const std::vector<std::string>& names,
    const std::vector<at::Tensor>& initial) {
  WEIR_RETURN_IF_ERROR(CheckUnchanged(module, names, initial));
  std::unique_ptr<graph::ModuleReplica> copy;
  WEIR_RETURN_IF_ERROR(CatchAs(absl::StatusCode::kInvalidArgument, "cannot be cloned",
                               [&] { copy = graph::CopyOf(module); }));
  copy->Bind(initial);
  return copy->module;
}

// A frozen batch norm is in evaluation mode in the midst of a net in training, and the other way
// round.
bool AnyInTraining(const torch::nn::Module& module) {
  return module.is_training() || std::ranges::any_of(module.children(), [](const auto& child) {
           return AnyInTraining(*child);
         });
}

// What a ModuleCall returns for the changes of the buffers.
void AppendChanges(std::span<const at::Tensor> buffers, std::vector<OutputInfo>& outputs) {
  for (const at::Tensor& buffer : buffers) {
    std::vector<std::int64_t> shape = buffer.sizes().vec();
    const BufferChange change = graph::ChangeOf(buffer);
    if (change == BufferChange::kNone) continue;
    if (change == BufferChange::kRows) {
      shape[0] = -1;
      outputs.push_back({.dtype = at::kLong, .shape = std::vector<std::int64_t>{-1}});
    }
    outputs.push_back({.dtype = buffer.scalar_type(), .shape = std::move(shape)});
  }
}

// Operations that add it to the variables of the buffers.
void AddUpdates(Graph& graph, std::span<const at::Tensor> buffers,
                std::span<const Variable> variables, std::span<const Output> changes,
                std::vector<Operation>& updates) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    switch (graph::ChangeOf(buffers[i])) {
      case BufferChange::kNone:
        break;
      case BufferChange::kSum:
        updates.push_back(graph.AssignAdd(variables[i], changes[next++]));
        break;
      case BufferChange::kRows:
        updates.push_back(graph.ScatterAdd(variables[i], changes[next], changes[next + 1]));
        next += 2;
        break;
    }
  }
}

}  // namespace

absl::Status Module::MakeVariables(const VariableOptions& options) {
  if (shared_->module == nullptr) return absl::InvalidArgumentError("is a null pointer");
  const auto state = StateOf(*shared_->module, shared_->num_parameters);
  WEIR_RETURN_IF_ERROR(CheckNotTied(state));
  WEIR_RETURN_IF_ERROR(CheckCloneable(*shared_->module));
  for (std::size_t i = 0; i < state.size(); ++i) {
    const auto& [name, value] = state[i];
    VariableOptions own = options;
    const bool is_parameter = i < shared_->num_parameters;
    own.trainable = options.trainable && is_parameter && value.requires_grad();
    if (!is_parameter || value.dim() == 0) own.partitioner = nullptr;
    shared_->names.push_back(name);
    shared_->initial.push_back(value.detach().clone());
    shared_->variables.push_back(shared_->graph->Variable(
        absl::StrCat(shared_->name, "/", name), FromTensor(shared_->initial.back()), own));
  }
  return absl::OkStatus();
}

Module::Module(Graph& graph, std::shared_ptr<torch::nn::Module> module, ModuleForward forward,
               const std::string& name, const VariableOptions& options)
    : shared_(std::make_shared<Shared>(Shared{.graph = &graph,
                                              .module = std::move(module),
                                              .forward = std::move(forward),
                                              .name = name})) {
  const absl::Status status = MakeVariables(options);
  if (status.ok()) return;
  graph.AddError(Annotate(status, absl::StrCat("module '", name, "'")));
  shared_->module = nullptr;
}

std::vector<Output> Module::operator()(const std::vector<Output>& inputs) {
  if (shared_->module == nullptr) return {};
  Graph& graph = *shared_->graph;
  const auto fail = [&](const absl::Status& why) {
    graph.AddError(Annotate(why, absl::StrCat("module '", shared_->name, "'")));
    return std::vector<Output>();
  };
  auto snapshot = Snapshot(*shared_->module, shared_->names, shared_->initial);
  if (!snapshot.ok()) return fail(snapshot.status());
  auto outputs = graph::InferModule(**snapshot, shared_->forward, inputs);
  if (!outputs.ok()) return fail(outputs.status());
  const std::size_t num_outputs = outputs->size();
  const bool training = AnyInTraining(**snapshot);
  const std::span<const at::Tensor> buffers =
      std::span(shared_->initial).subspan(shared_->num_parameters);
  if (training) AppendChanges(buffers, *outputs);
  std::vector<Output> values = inputs;
  for (const Variable& variable : shared_->variables) values.push_back(variable.read());
  auto replicas = std::make_shared<ModuleReplicas>(*std::move(snapshot));
  std::vector<Output> all =
      graph.Function(ModuleCall(std::move(replicas), shared_->forward, inputs.size(), training),
                     values, *std::move(outputs), shared_->name);
  if (training) {
    AddUpdates(graph, buffers, std::span(shared_->variables).subspan(shared_->num_parameters),
               std::span(all).subspan(num_outputs), shared_->updates);
  }
  all.resize(num_outputs);
  return all;
}

Operation Module::updates() {
  return shared_->graph->Group(shared_->updates, absl::StrCat(shared_->name, "/updates"));
}

std::vector<Output> Module::state() const {
  std::vector<Output> reads;
  for (const Variable& variable : shared_->variables) reads.push_back(variable.read());
  return reads;
}

std::vector<std::string> Module::names() const {
  return shared_->names;
}

absl::Status Module::Load(const std::vector<at::Tensor>& values) const {
  const auto fail = [&](const absl::Status& why) {
    return Annotate(why, absl::StrCat("module '", shared_->name, "'"));
  };
  if (shared_->module == nullptr)
    return fail(absl::InvalidArgumentError("was not made: the graph's status says why"));
  if (values.size() != shared_->names.size()) {
    return fail(absl::InvalidArgumentError(
        absl::StrCat("has ", shared_->names.size(), " tensors, not ", values.size())));
  }
  if (const absl::Status status =
          CheckUnchanged(*shared_->module, shared_->names, shared_->initial);
      !status.ok()) {
    return fail(status);
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].defined() && values[i].sizes() == shared_->initial[i].sizes()) continue;
    return fail(absl::InvalidArgumentError(
        absl::StrCat("the value for '", shared_->names[i], "' is of another shape")));
  }
  std::size_t num_parameters = 0;
  const auto state = StateOf(*shared_->module, num_parameters);
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < values.size(); ++i)
    at::Tensor(state[i].second).detach().copy_(values[i]);
  return absl::OkStatus();
}

}  // namespace weir
