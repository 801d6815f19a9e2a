// What several workers do to one variable at once, through the rules that users choose.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <thread>

#include "optim/rule_testing.h"

namespace weir::optim {
namespace {

using Dims = std::vector<std::int64_t>;

constexpr int kWorkers = 8;
constexpr std::int64_t kTwoBlocks = store::kBlockElements + 1000;

/// Each of kWorkers pushes a gradient of 1 at a learning rate of 1, `pushes` times, and reads back.
void PushOnes(const std::shared_ptr<store::Variable>& variable, bool use_locking, int pushes) {
  const auto rule = RuleOf(Sgd{.learning_rate = 1, .use_locking = use_locking}, variable);
  std::vector<std::thread> workers;
  for (int worker = 0; worker < kWorkers; ++worker) {
    workers.emplace_back([&] {
      const at::Tensor one = at::ones(variable->def().initializer.shape);
      for (int i = 0; i < pushes; ++i) {
        Apply(*rule, one);
        EXPECT_TRUE(variable->Read().ok());
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
}

TEST(HogwildTest, LockedUpdatesLoseNoElementsIncrement) {
  for (const Dims& shape : {Dims{}, Dims{1000}}) {
    const auto variable = store::InitializedVariable(store::DefOf(store::ConstantOf(shape, 0)));
    PushOnes(variable, /*use_locking=*/true, 10'000);
    EXPECT_TRUE(at::equal(store::ValueOf(*variable), at::full(shape, -80'000.0f)));
    EXPECT_EQ(variable->version(), 80'000u);
  }
}

// Elements may lose updates, the count of pushes may not; and nobody has waited for a lock.
TEST(HogwildTest, UnlockedUpdatesAreAllCounted) {
  for (const Dims& shape : {Dims{}, Dims{1000}}) {
    const auto variable = store::InitializedVariable(store::DefOf(store::ConstantOf(shape, 0)));
    PushOnes(variable, /*use_locking=*/false, 10'000);
    EXPECT_EQ(variable->version(), 80'000u);
    EXPECT_EQ(variable->lock_acquisitions(), 0u);
    EXPECT_GE(at::min(store::ValueOf(*variable)).item<float>(), -80'000.0f);
    EXPECT_LE(at::max(store::ValueOf(*variable)).item<float>(), -1.0f);
  }
}

// An update held between two blocks of its kernel, under default options: a read does not wait and
// sees the first block new and the second old.
TEST(HogwildTest, AReadDuringAnUpdateIsTorn) {
  for (const OptimizerSpec& spec : {OptimizerSpec(Sgd{}), OptimizerSpec(Momentum{}),
                                    OptimizerSpec(Adam{}), OptimizerSpec(Lamb{})}) {
    const auto variable = store::FloatVariable(kTwoBlocks);
    store::Snapshot torn;
    variable->SetBlockHook([&](store::Pass pass, std::int64_t) {
      if (pass != store::Pass::kUpdate) return;
      std::thread([&] { torn = variable->ReadCopy().value(); }).join();
    });
    Apply(*RuleOf(spec, variable), at::ones({kTwoBlocks}));
    EXPECT_LT(torn.tensor[store::kBlockElements - 1].item<float>(), 0) << spec.rule;
    EXPECT_EQ(torn.tensor[store::kBlockElements].item<float>(), 0) << spec.rule;
    EXPECT_EQ(torn.version, 0u);
    EXPECT_EQ(variable->lock_acquisitions(), 0u);
  }
}

// Updates that others finish between two blocks of one do not change which update it is.
TEST(HogwildTest, AnUpdateIsOfOneNumber) {
  for (const OptimizerSpec& spec :
       {OptimizerSpec(Adam{}), OptimizerSpec(AdamW{}), OptimizerSpec(Lamb{})}) {
    const auto variable = VariableOf(at::ones({kTwoBlocks}));
    const auto rule = RuleOf(spec, variable);
    variable->SetBlockHook([&](store::Pass pass, std::int64_t) {
      if (pass != store::Pass::kUpdate) return;
      for (const char* power : {"scope/beta1_power", "scope/beta2_power"})
        variable->slots().at(power).mul_(0.5);
    });
    Apply(*rule, at::ones({kTwoBlocks}));
    const at::Tensor value = store::ValueOf(*variable);
    EXPECT_TRUE(at::equal(value, value[0].expand({kTwoBlocks}))) << spec.rule;
  }
}

// A read with consistent_reads during an update waits, and gets all of it.
TEST(HogwildTest, AConsistentReadDuringAnUpdateIsWhole) {
  store::VariableDef def = store::DefOf(store::ConstantOf({kTwoBlocks}, 0));
  def.consistent_reads = true;
  const auto variable = store::InitializedVariable(std::move(def));
  store::Snapshot read;
  std::thread reader;
  variable->SetBlockHook([&](store::Pass pass, std::int64_t) {
    if (pass != store::Pass::kUpdate) return;
    reader = std::thread([&] { read = variable->ReadCopy().value(); });
    // Until the reader has come to the lock that this update holds.
    while (variable->lock_acquisitions() < 2) std::this_thread::yield();
  });
  Apply(*RuleOf(Sgd{.learning_rate = 1}, variable), at::ones({kTwoBlocks}));
  reader.join();
  EXPECT_TRUE(at::equal(read.tensor, at::full({kTwoBlocks}, -1.0f)));
  EXPECT_EQ(read.version, 1u);
}

}  // namespace
}  // namespace weir::optim
