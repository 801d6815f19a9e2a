// The nodes that users make: one method of Graph for each.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "graph/graph_draft.h"
#include "graph/initializer_attrs.h"
#include "graph/names.h"
#include "graph/op_registry.h"
#include "graph/row_shards.h"
#include "graph/shard_map.h"
#include "tensor/dtype.h"
#include "weir/graph.h"

namespace weir {
namespace {

// A container's name is part of a variable's; so is the grammar.
absl::Status CheckOptions(const VariableOptions& options) {
  if (options.consistent_reads && options.read_in_place) {
    return absl::InvalidArgumentError(
        "consistent_reads takes copies, read_in_place none: choose one");
  }
  if (!options.container.empty() && !graph::IsNodeName(options.container)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", options.container, "' is no name for a container"));
  }
  return absl::OkStatus();
}

absl::Status CheckPlaceholder(at::ScalarType dtype, const std::vector<std::int64_t>& shape) {
  if (DtypeCode(dtype) == 0) return absl::InvalidArgumentError("its dtype is none a feed can have");
  for (std::int64_t dim : shape) {
    if (dim < -1) {
      return absl::InvalidArgumentError(absl::StrCat("its shape has the dimension ", dim));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckConst(const at::Tensor& value) {
  if (!value.defined()) return absl::InvalidArgumentError("its value is no tensor");
  if (!value.device().is_cpu() || value.layout() != at::kStrided ||
      DtypeCode(value.scalar_type()) == 0) {
    return absl::InvalidArgumentError("its value is no dense CPU tensor of a dtype that travels");
  }
  return absl::OkStatus();
}

absl::Status CheckSlicing(const Slicing& slicing, const std::vector<std::int64_t>& shape,
                          RowLayout layout) {
  const bool has_axis = slicing.axis >= 0 && slicing.axis < static_cast<int>(shape.size());
  if (slicing.count == 1) return absl::OkStatus();
  if (slicing.count < 1 || !has_axis ||
      slicing.count > shape[static_cast<std::size_t>(slicing.axis)]) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot be cut into ", slicing.count, " slices along axis ", slicing.axis));
  }
  if (layout == RowLayout::kMod && slicing.axis != 0)
    return absl::InvalidArgumentError("layout mod is for variables that are cut along axis 0");
  return absl::OkStatus();
}

void SetOptions(const VariableOptions& options, bool trainable, Node& node) {
  node.attrs["container"] = options.container;
  node.attrs["trainable"] = trainable;
  node.attrs["use_locking"] = options.use_locking;
  node.attrs["consistent_reads"] = options.consistent_reads;
  node.attrs["read_in_place"] = options.read_in_place;
}

}  // namespace

Output Graph::Placeholder(const std::string& name, at::ScalarType dtype,
                          std::vector<std::int64_t> shape) {
  Draft draft = Begin("Placeholder", name);
  if (const absl::Status status = CheckPlaceholder(dtype, shape); !status.ok()) {
    Fail(draft, status);
  }
  draft.node.attrs["dtype"] = dtype;
  draft.node.attrs["shape"] = std::move(shape);
  return {this, Finish(std::move(draft)), 0};
}

Output Graph::Const(at::Tensor value, const std::string& name) {
  Draft draft = Begin("Const", name);
  if (const absl::Status status = CheckConst(value); !status.ok()) {
    Fail(draft, status);
  } else {
    value = value.detach().clone(at::MemoryFormat::Contiguous);
  }
  draft.node.attrs["value"] = std::move(value);
  return {this, Finish(std::move(draft)), 0};
}

// A variable's name is the key of its state, which other clients may share: it is never changed,
// except in a graph in error, so that its nodes have names of their own all the same.
void Graph::NameVariable(Node& node, const std::string& name) {
  node.name = name;
  std::string problem;
  if (name.starts_with('_')) {
    problem = "a variable's name may not start with '_'";
  } else if (!graph::IsNodeName(name)) {
    problem =
        "a variable's name begins with a letter, digit or '.', and goes on with these or "
        "'_', '-', '/', '\\'";
  } else if (const int other = FindNode(name); other >= 0) {
    problem = absl::StrCat("a variable needs the name for itself, and a ", this->node(other).op,
                           " has it already");
  }
  if (problem.empty()) return;
  Report(node, absl::InvalidArgumentError(problem));
  node.name = UniqueName(name);
}

// The slices are not nodes yet: graph/apply_shard_map.cc makes them when a session is opened. But
// they are placed here, where the device scopes are known.
void Graph::Partition(Draft& draft, const Initializer& initializer,
                      const VariableOptions& options) {
  const auto slicing = options.partitioner(initializer.shape, initializer.dtype);
  if (!slicing.ok()) return Fail(draft, slicing.status());
  if (const absl::Status status = CheckSlicing(*slicing, initializer.shape, options.layout);
      !status.ok()) {
    return Fail(draft, status);
  }
  if (slicing->count == 1) return;
  const auto axis = static_cast<std::size_t>(slicing->axis);
  const std::vector<std::int64_t> sizes = graph::EvenSizes(initializer.shape[axis], slicing->count);
  graph::SetShardAttrs(sizes, options.layout, draft.node);
  draft.node.attrs["axis"] = static_cast<std::int64_t>(slicing->axis);
  std::vector<std::string> devices;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Draft slice = draft;
    slice.node.name = graph::SliceName(draft.node.name, i);
    std::vector<std::int64_t> shape = initializer.shape;
    shape[axis] = sizes[i];
    slice.node.attrs["shape"] = std::move(shape);
    ApplyDeviceScopes(slice);
    devices.push_back(slice.node.device);
  }
  draft.node.attrs["slice_devices"] = std::move(devices);
  draft.ignores_scopes = true;
}

weir::Variable Graph::Variable(const std::string& name, const Initializer& initializer,
                               const VariableOptions& options) {
  Draft draft = Begin("Variable", name);
  for (const absl::Status& status : {graph::CheckInitializer(initializer), CheckOptions(options)}) {
    if (!status.ok()) Fail(draft, status);
  }
  const bool trainable = options.trainable && at::isFloatingType(initializer.dtype);
  graph::InitializerToAttrs(initializer, draft.node);
  SetOptions(options, trainable, draft.node);
  if (options.partitioner && draft.ok) Partition(draft, initializer, options);
  const std::string variable_name = draft.node.name;
  const Output handle(this, Finish(std::move(draft)), 0);

  Draft read = Begin("Read", variable_name + "/read");
  read.node.colocation = variable_name;
  read.ignores_scopes = true;
  AddInput(read, handle);
  const weir::Variable variable(handle, {this, Finish(std::move(read)), 0});
  if (trainable) trainable_.push_back(variable);
  return variable;
}

Operation Graph::Assign(const weir::Variable& variable, Output value, const std::string& name) {
  Draft draft = Begin("Assign", name);
  AddInput(draft, variable.handle());
  AddInput(draft, value);
  return {this, Finish(std::move(draft))};
}

Operation Graph::AssignAdd(const weir::Variable& variable, Output value, const std::string& name) {
  Draft draft = Begin("AssignAdd", name);
  AddInput(draft, variable.handle());
  AddInput(draft, value);
  return {this, Finish(std::move(draft))};
}

Operation Graph::ScatterAdd(const weir::Variable& variable, Output ids, Output values,
                            const std::string& name) {
  Draft draft = Begin("ScatterAdd", name);
  AddInput(draft, variable.handle());
  AddInput(draft, ids);
  AddInput(draft, values);
  return {this, Finish(std::move(draft))};
}

Operation Graph::ScatterUpdate(const weir::Variable& variable, Output ids, Output values,
                               const std::string& name) {
  Draft draft = Begin("ScatterUpdate", name);
  AddInput(draft, variable.handle());
  AddInput(draft, ids);
  AddInput(draft, values);
  return {this, Finish(std::move(draft))};
}

Output Graph::IsInitialized(const weir::Variable& variable, const std::string& name) {
  Draft draft = Begin("IsInitialized", name);
  AddInput(draft, variable.handle());
  return {this, Finish(std::move(draft)), 0};
}

Output Graph::Identity(Output input, const std::string& name) {
  Draft draft = Begin("Identity", name);
  AddInput(draft, input);
  return {this, Finish(std::move(draft)), 0};
}

Operation Graph::Group(const std::vector<Operation>& operations, const std::string& name) {
  Draft draft = Begin("Group", name);
  for (const Operation& operation : operations) AddControlInput(draft, operation);
  return {this, Finish(std::move(draft))};
}

std::vector<Output> Graph::Function(TensorFunction function, std::vector<Output> inputs,
                                    std::vector<OutputInfo> outputs, const std::string& name) {
  Draft draft = Begin("Function", name);
  for (const Output& input : inputs) AddInput(draft, input);
  if (!function) Fail(draft, absl::InvalidArgumentError("its function is empty"));
  const auto handle = static_cast<std::int64_t>(functions_.size());
  functions_.emplace(handle, std::move(function));
  draft.node.attrs["handle"] = handle;
  draft.node.outputs = std::move(outputs);
  return OutputsOf(Finish(std::move(draft)));
}

std::vector<Output> Graph::Gradients(Output loss, const std::vector<Output>& xs,
                                     const std::string& name) {
  Draft draft = Begin("Gradients", name);
  AddInput(draft, loss);
  for (const Output& x : xs) AddInput(draft, x);
  if (xs.empty()) Fail(draft, absl::InvalidArgumentError("gradients of nothing are asked for"));
  draft.node.outputs.resize(xs.size());
  return OutputsOf(Finish(std::move(draft)));
}

}  // namespace weir
