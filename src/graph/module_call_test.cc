#include "graph/module_call.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <torch/nn/cloneable.h>

#include <memory>
#include <vector>

namespace weir::graph {
namespace {

/// A call of M with `num_inputs` inputs.
template <class M>
ModuleCall CallOf(std::shared_ptr<M> module, std::size_t num_inputs, bool changes) {
  return {std::make_shared<ModuleReplicas>(std::move(module)), ForwardOf<M>(), num_inputs, changes};
}

struct TableImpl : torch::nn::Cloneable<TableImpl> {
  TableImpl() { reset(); }
  void reset() override { table = register_buffer("table", at::zeros({4, 2})); }
  at::Tensor forward(const at::Tensor& rows) {
    table.index_fill_(0, rows, 1);
    return rows.clone();
  }
  at::Tensor table;
};

TEST(ModuleCall, SaysOfATableTheRowsThatChanged) {
  const ModuleCall call = CallOf(std::make_shared<TableImpl>(), 1, true);
  const at::Tensor table = at::arange(8, at::kFloat).reshape({4, 2});
  auto outputs = call({at::tensor({1, 3}, at::kLong), table});
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_TRUE(at::equal(outputs[1], at::tensor({1, 3}, at::kLong)));
  EXPECT_TRUE(at::equal(outputs[2], at::tensor({-1.F, -2.F, -5.F, -6.F}).reshape({2, 2})));
  outputs = call({at::empty({0}, at::kLong), table});
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_EQ(outputs[1].numel(), 0);
  EXPECT_EQ(outputs[2].sizes(), at::IntArrayRef({0, 2}));
}

TEST(ModuleCall, SaysNothingOfBuffersWhenNotAsked) {
  const ModuleCall call = CallOf(std::make_shared<TableImpl>(), 1, false);
  EXPECT_EQ(call({at::tensor({1}, at::kLong), at::zeros({4, 2})}).size(), 1u);
}

}  // namespace
}  // namespace weir::graph
