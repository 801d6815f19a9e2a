// The dataflow graph: what a model is before it is placed and run.
//
// A graph is built by one thread. Errors made while it is built (a wrong shape, an unknown
// operator, a bad device string) do not interrupt the expression: they collect in the graph, with
// the node's name, and come out of OpenSession all at once.
//
//   weir::Graph graph;
//   auto x = graph.Placeholder("x", at::kFloat, {-1, 784});
//   auto w = graph.Variable("w", weir::TruncatedNormal({784, 10}, 0.03));
//   auto y = weir::ops::matmul(x, w);
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "weir/initializer.h"
#include "weir/partitioner.h"

namespace weir {

class Graph;
struct Node;

/// Dimensions of a tensor; -1 is a dimension that is known only when the graph runs. `nullopt`: not
/// even the rank is known.
using Shape = std::optional<std::vector<std::int64_t>>;

/// The closed type of attributes. `std::monostate` is the schema's None.
using AttrValue =
    std::variant<std::monostate, bool, std::int64_t, double, std::string, at::ScalarType,
                 at::Tensor, std::vector<bool>, std::vector<std::int64_t>, std::vector<double>,
                 std::vector<std::string>>;
using AttrMap = std::map<std::string, AttrValue>;

/// An input of a node: output `output` of node `node` (an index into the graph's nodes), or a
/// control edge when `output` is kControl: "not before that node has run".
struct Edge {
  static constexpr int kControl = -1;
  int node = 0;
  int output = 0;
  bool is_control() const { return output == kControl; }
  bool operator==(const Edge&) const = default;
};

/// What is known of one output when the graph is built.
struct OutputInfo {
  at::ScalarType dtype = at::ScalarType::Undefined;  // Undefined: no tensor (a variable's handle)
  Shape shape = std::nullopt;
  bool differentiable = false;  // a gradient can flow back through it
};

/// One node. Plain data: the passes of src/graph read and rewrite vectors of these.
struct Node {
  std::string name;
  std::string op;                 // "Aten", "Variable", "Read", ...; see src/graph/op_registry.h
  std::vector<Edge> inputs = {};  // data inputs in order, control inputs after them
  AttrMap attrs = {};
  std::string device = {};      // requested, canonical, may be partial or empty; full once placed
  std::string colocation = {};  // name of the node whose device this one must share; "" for none
  std::vector<OutputInfo> outputs = {};
};

/// A graph as plain data, nodes in topological order of data edges where passes say so.
struct GraphDef {
  std::vector<Node> nodes;
  std::uint64_t seed = 0;  // of random operators and initialisers
};

/// A node seen as something to run: a target, or the source of a control edge. Valid as long as its
/// graph.
class Operation {
 public:
  Operation() = default;
  Operation(Graph* graph, int node) : graph_(graph), node_(node) {}
  bool valid() const { return graph_ != nullptr; }
  Graph* graph() const { return graph_; }
  int node() const { return node_; }
  const std::string& name() const;

 private:
  Graph* graph_ = nullptr;
  int node_ = 0;
};

/// One output of a node: an edge that does not yet lead anywhere. Cheap to copy; valid as long as
/// its graph. A default-constructed Output stands for "no tensor" where a schema allows one.
class Output {
 public:
  Output() = default;
  Output(Graph* graph, int node, int index) : graph_(graph), node_(node), index_(index) {}
  bool valid() const { return graph_ != nullptr; }
  Graph* graph() const { return graph_; }
  int node() const { return node_; }
  int index() const { return index_; }
  Operation op() const { return {graph_, node_}; }
  at::ScalarType dtype() const;
  const Shape& shape() const;
  /// "node" for output 0, "node:1" for others.
  std::string name() const;

 private:
  const OutputInfo& info() const;

  Graph* graph_ = nullptr;
  int node_ = 0;
  int index_ = 0;
};

/// State of the model, living in the store of one task. Used as a tensor it means the variable's
/// one Read of the step; see Graph::Variable.
class Variable {
 public:
  Variable() = default;
  Variable(Output handle, Output read) : handle_(handle), read_(read) {}
  Output handle() const { return handle_; }
  Output read() const { return read_; }
  operator Output() const { return read_; }  // NOLINT: a variable is a tensor to the model
  const std::string& name() const { return handle_.op().name(); }

 private:
  Output handle_;
  Output read_;
};

/// A variable that exists keeps the options of whoever made it; asking it for a guarantee that it
/// lacks (use_locking, consistent_reads) is InvalidArgument when the session is opened.
struct VariableOptions {
  /// In the gradient's and optimizer's sight. Only floating point variables ever are.
  bool trainable = true;
  /// Two updates of this variable exclude each other. Reads still take no lock.
  bool use_locking = false;
  /// A read sees one whole version, at the price of a copy under the variable's lock.
  bool consistent_reads = false;
  /// A local read is the variable's own buffer and changes under the reader's eyes.
  bool read_in_place = false;
  /// Cuts the variable into slices, which are placed one by one; null: it stays whole.
  Partitioner partitioner = nullptr;
  /// Of the rows of a variable that is cut along axis 0.
  RowLayout layout = RowLayout::kDiv;
  /// Where the variable lives beside its name; "" is the job's name of its device, as in the
  /// original.
  std::string container = {};
};

/// What Graph::Aten takes for one argument of the operator's schema.
using AtenArg = std::variant<Output, std::vector<Output>, AttrValue>;

/// A callable node, run only in the process that built the graph. Gets the inputs, returns the
/// outputs; may throw. Called on a step's thread, several steps at a time when several are in
/// flight. Must not write to its inputs, which constants and other nodes share. What it computes by
/// differentiable operators is differentiated.
using TensorFunction = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

/// Decides a device for each new node: gets the node as built so far (its `device` is what inner
/// scopes asked for) and returns the device request to use. Partial requests are merged inner over
/// outer.
using DeviceFunction = std::function<std::string(const Node&)>;

class Graph {
 public:
  explicit Graph(std::uint64_t seed = 0);
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();

  /// A value given with each run. `shape` may hold -1.
  Output Placeholder(const std::string& name, at::ScalarType dtype,
                     std::vector<std::int64_t> shape);

  /// A constant tensor, held by the graph and shipped with the plan. The value is copied.
  Output Const(at::Tensor value, const std::string& name = "Const");

  /// A variable with its initialiser. Used as a tensor it means its one implicit Read: every step
  /// reads it once however many nodes consume it.
  weir::Variable Variable(const std::string& name, const Initializer& initializer,
                          const VariableOptions& options = {});

  /// Overwrites a variable; returns the op to run.
  Operation Assign(const weir::Variable& variable, Output value,
                   const std::string& name = "Assign");
  /// Adds to a variable (an update: counts a version).
  Operation AssignAdd(const weir::Variable& variable, Output value,
                      const std::string& name = "AssignAdd");
  /// Adds values[k] to row ids[k] of the variable, for each k (an update). `ids` is a list of
  /// int64.
  Operation ScatterAdd(const weir::Variable& variable, Output ids, Output values,
                       const std::string& name = "ScatterAdd");
  /// Overwrites row ids[k] by values[k]; of several values for one row the last one stays.
  Operation ScatterUpdate(const weir::Variable& variable, Output ids, Output values,
                          const std::string& name = "ScatterUpdate");
  /// A bool scalar.
  Output IsInitialized(const weir::Variable& variable, const std::string& name = "IsInitialized");

  Output Identity(Output input, const std::string& name = "Identity");

  /// An operation that has run when all `operations` have.
  Operation Group(const std::vector<Operation>& operations, const std::string& name = "Group");

  /// Any operator of the libtorch dispatcher that does not mutate: `op` is "aten::linear",
  /// `overload` its overload ("" for the plain one). Arguments are positional as in its schema;
  /// missing ones take the schema's defaults. A tensor given as a value becomes a Const. Returns
  /// one Output for each tensor the operator returns; never none, even after an error.
  std::vector<Output> Aten(const std::string& op, const std::string& overload,
                           std::vector<AtenArg> args, const std::string& name = "");

  /// A node that calls `function`. `outputs` says what it returns.
  std::vector<Output> Function(TensorFunction function, std::vector<Output> inputs,
                               std::vector<OutputInfo> outputs,
                               const std::string& name = "Function");

  /// Gradients of the scalar `loss` with respect to `xs`, one for each; an x that the loss does not
  /// depend on gets an absent gradient. Symbolic: cut into segments when the graph has been placed.
  std::vector<Output> Gradients(Output loss, const std::vector<Output>& xs,
                                const std::string& name = "gradients");

  /// For layers above: adds a node of any registered op. Names are made unique by a suffix "_1",
  /// "_2", ... except for variables, whose names are state: a second variable of a name is an
  /// error.
  Operation AddNode(Node node);

  /// `operation` will not run before `before` has.
  void AddControlEdge(Operation before, Operation operation);
  /// `operation` shares the device of `with`, whatever the device scopes around it ask for.
  void Colocate(Operation operation, Operation with);

  /// Every error made so far, in one status (InvalidArgument); OK when there is none.
  absl::Status status() const;
  /// Remembers an error made while building.
  void AddError(absl::Status error);

  const GraphDef& def() const { return def_; }
  Node& node(int index) { return def_.nodes[static_cast<std::size_t>(index)]; }
  const Node& node(int index) const { return def_.nodes[static_cast<std::size_t>(index)]; }
  /// Trainable variables in creation order.
  const std::vector<weir::Variable>& trainable_variables() const { return trainable_; }
  /// -1 when there is no node of that name.
  int FindNode(const std::string& name) const;
  /// Functions by the handle stored in the node's attribute "handle".
  const std::map<std::int64_t, TensorFunction>& functions() const { return functions_; }

  /// What DeviceScope and ControlDependencies do. An empty function hides the scopes around it.
  void PushDevice(DeviceFunction function);
  void PopDevice();
  void PushControlDependencies(std::vector<Operation> operations);
  void PopControlDependencies();

 private:
  struct Draft;  // a node that is being made, in src/graph/graph_draft.h

  Draft Begin(const std::string& op, const std::string& name);
  void Report(const Node& node, const absl::Status& why);
  void Fail(Draft& draft, const absl::Status& why);
  bool HasNode(int index) const;
  bool CheckOutput(Draft& draft, const Output& output);
  void AddInput(Draft& draft, const Output& output);
  void AddControlInput(Draft& draft, const Operation& before);
  int Finish(Draft draft);
  std::vector<Output> OutputsOf(int node);

  std::string UniqueName(const std::string& wanted);
  void NameVariable(Node& node, const std::string& name);
  void Partition(Draft& draft, const Initializer& initializer, const VariableOptions& options);
  void ApplyDeviceScopes(Draft& draft);
  void MergeDevice(Node& node, const std::string& request);
  void ApplyControlScopes(Draft& draft);
  void InferOutputs(Draft& draft);
  void BindAten(Draft& draft, std::vector<AtenArg> args);
  bool DependsOnBroken(const Node& node) const;

  GraphDef def_;
  std::map<std::string, int> names_;
  std::map<std::string, int> name_counts_;
  std::vector<DeviceFunction> device_scopes_;  // an empty function: no request from further out
  std::vector<std::vector<Operation>> control_scopes_;
  std::vector<weir::Variable> trainable_;
  std::map<std::int64_t, TensorFunction> functions_;
  std::vector<absl::Status> errors_;
  std::set<std::string> bad_devices_;  // reported already
  std::set<int> broken_;               // nodes with an error; what depends on them is not to blame
};

/// Nodes built while it lives request `device`, or what `function` says. Nest freely: an inner
/// scope wins field by field; an empty string resets to no request.
class DeviceScope {
 public:
  DeviceScope(Graph& graph, const std::string& device);
  DeviceScope(Graph& graph, DeviceFunction function);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  Graph& graph_;
};

/// Nodes built while it lives run after `operations`, and after those of the scopes around it.
/// Placeholders and variables, with their implicit reads, wait for nothing.
class ControlDependencies {
 public:
  ControlDependencies(Graph& graph, std::vector<Operation> operations);
  ~ControlDependencies();
  ControlDependencies(const ControlDependencies&) = delete;
  ControlDependencies& operator=(const ControlDependencies&) = delete;

 private:
  Graph& graph_;
};

}  // namespace weir
