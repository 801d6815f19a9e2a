#include "rpc/grpc/graph_proto.h"

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "rpc/grpc/attr_proto.h"
#include "rpc/grpc/tensor_proto.h"

namespace weir::rpc {
namespace {

absl::Status WriteOutput(const OutputInfo& output, v1::OutputInfo* proto) {
  WEIR_ASSIGN_OR_RETURN(const std::uint32_t dtype, DtypeToProto(output.dtype));
  proto->set_dtype(dtype);
  if (output.shape.has_value()) {
    proto->mutable_shape()->mutable_dims()->Add(output.shape->begin(), output.shape->end());
  }
  proto->set_differentiable(output.differentiable);
  return absl::OkStatus();
}

absl::Status WriteNode(const Node& node, v1::Node* proto) {
  proto->set_name(node.name);
  proto->set_op(node.op);
  for (const Edge& edge : node.inputs) {
    v1::Edge* input = proto->add_inputs();
    input->set_node(edge.node);
    input->set_output(edge.output);
  }
  for (const auto& [name, value] : node.attrs) {
    v1::Attr* attr = proto->add_attrs();
    attr->set_name(name);
    WEIR_RETURN_IF_ERROR(Annotate(ToProto(value, attr), "attribute '" + name + "'"));
  }
  proto->set_device(node.device);
  proto->set_colocation(node.colocation);
  for (const OutputInfo& output : node.outputs) {
    WEIR_RETURN_IF_ERROR(WriteOutput(output, proto->add_outputs()));
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> ReadShape(const v1::OutputInfo& proto) {
  if (!proto.has_shape()) return Shape();
  for (const std::int64_t dim : proto.shape().dims()) {
    if (dim < -1) return absl::InvalidArgumentError(absl::StrCat("a dimension of ", dim));
  }
  return Shape(std::in_place, proto.shape().dims().begin(), proto.shape().dims().end());
}

absl::StatusOr<OutputInfo> ReadOutput(const v1::OutputInfo& proto) {
  OutputInfo output;
  WEIR_ASSIGN_OR_RETURN(output.dtype, DtypeFromProto(proto.dtype()));
  WEIR_ASSIGN_OR_RETURN(output.shape, ReadShape(proto));
  output.differentiable = proto.differentiable();
  return output;
}

absl::StatusOr<AttrMap> ReadAttrs(const v1::Node& proto) {
  AttrMap attrs;
  for (const v1::Attr& attr : proto.attrs()) {
    absl::StatusOr<AttrValue> value = FromProto(attr);
    if (!value.ok()) return Annotate(value.status(), "attribute '" + attr.name() + "'");
    if (!attrs.try_emplace(attr.name(), *std::move(value)).second) {
      return absl::InvalidArgumentError("attribute '" + attr.name() + "' is there twice");
    }
  }
  return attrs;
}

absl::StatusOr<Node> ReadNode(const v1::Node& proto) {
  Node node;
  node.name = proto.name();
  node.op = proto.op();
  node.inputs.reserve(static_cast<std::size_t>(proto.inputs_size()));
  for (const v1::Edge& edge : proto.inputs()) {
    node.inputs.push_back({.node = edge.node(), .output = edge.output()});
  }
  WEIR_ASSIGN_OR_RETURN(node.attrs, ReadAttrs(proto));
  node.device = proto.device();
  node.colocation = proto.colocation();
  for (const v1::OutputInfo& output : proto.outputs()) {
    WEIR_ASSIGN_OR_RETURN(node.outputs.emplace_back(), ReadOutput(output));
  }
  return node;
}

}  // namespace

absl::Status ToProto(const GraphDef& graph, v1::GraphDef* proto) {
  for (const Node& node : graph.nodes) {
    WEIR_RETURN_IF_ERROR(Annotate(WriteNode(node, proto->add_nodes()), "node '" + node.name + "'"));
  }
  proto->set_seed(graph.seed);
  return absl::OkStatus();
}

absl::StatusOr<GraphDef> FromProto(const v1::GraphDef& proto) {
  GraphDef graph;
  graph.nodes.reserve(static_cast<std::size_t>(proto.nodes_size()));
  for (const v1::Node& node : proto.nodes()) {
    absl::StatusOr<Node> parsed = ReadNode(node);
    if (!parsed.ok()) return Annotate(parsed.status(), "node '" + node.name() + "'");
    graph.nodes.push_back(*std::move(parsed));
  }
  graph.seed = proto.seed();
  return graph;
}

}  // namespace weir::rpc
