#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/node_util.h"
#include "graph/op_registry.h"
#include "graph/passes.h"
#include "graph/passes_testing.h"

namespace weir::graph {
namespace {

using ::testing::ElementsAre;

// global_step on ps 0, w where it is told; its gradient is made on `maker`.
struct Step {
  TestGraph g;
  Edge ticket;
  Edge gradient;
  int apply = 0;

  Step(const std::string& variable_device, const std::string& maker) {
    ticket = g.Ticket(g.Variable("global_step", {}, kPs0));
    gradient = g.Aten("gradient", {}, maker);
    apply = g.Apply(g.Variable("w", {2}, variable_device), gradient);
    g.After(apply, ticket.node);
  }

  /// The update wants the number of its step.
  void TellStep() {
    Node& node = g.at(apply);
    node.attrs["step"] = true;
    node.inputs.insert(node.inputs.begin() + 2, ticket);
  }

  void Hoist() {
    HoistTickets(g.def);
    EXPECT_TRUE(TopologicalOrder(g.def).ok());
  }
};

TEST(HoistTicketsTest, TheGradientWaitsWhereItIsMade) {
  Step step(kPs1, kWorker0);
  step.Hoist();
  EXPECT_THAT(InputNames(step.g.def, "w/apply"), ElementsAre("w", "w/gradient"));
  EXPECT_THAT(InputNames(step.g.def, "w/gradient"), ElementsAre("gradient", "^ticket"));
  EXPECT_EQ(step.g.node("w/gradient").device, kWorker0);
  EXPECT_EQ(step.g.node("w/gradient").op, "Identity");
}

// Even where the ticket is at the variable: no push before the ticket.
TEST(HoistTicketsTest, ATicketBesideTheVariableIsWaitedForToo) {
  Step step(kPs0, kWorker0);
  step.Hoist();
  EXPECT_THAT(InputNames(step.g.def, "w/apply"), ElementsAre("w", "w/gradient"));
}

TEST(HoistTicketsTest, ATicketBesideTheGradientDoesNotCrossAtAll) {
  Step step(kPs1, kPs0);
  step.Hoist();
  EXPECT_THAT(InputNames(step.g.def, "w/gradient"), ElementsAre("gradient", "^ticket"));
  const auto plan = PartitionGraph(step.g.def);
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->edges.size(), 1U);
  EXPECT_EQ(plan->edges[0].tensor, "w/gradient");
}

TEST(HoistTicketsTest, ALocalGradientNeedsNothing) {
  for (const char* device : {kPs0, kWorker0}) {
    Step step(device, device);
    step.Hoist();
    EXPECT_THAT(InputNames(step.g.def, "w/apply"), ElementsAre("w", "gradient", "^ticket"));
  }
}

TEST(HoistTicketsTest, OtherConsumersOfTheGradientDoNotWait) {
  Step step(kPs1, kWorker0);
  step.g.Aten("norm", {step.gradient}, kWorker0);
  step.Hoist();
  EXPECT_THAT(InputNames(step.g.def, "norm"), ElementsAre("gradient"));
}

TEST(HoistTicketsTest, OneGradientForTwoVariablesWaitsOnce) {
  Step step(kPs1, kWorker0);
  const int other = step.g.Apply(step.g.Variable("v", {2}, kPs0), step.gradient);
  step.g.After(other, step.ticket.node);
  step.Hoist();
  EXPECT_THAT(NamesOfOp(step.g.def, "Identity"), ElementsAre("w/gradient"));
  EXPECT_THAT(InputNames(step.g.def, "v/apply"), ElementsAre("v", "w/gradient"));
}

TEST(HoistTicketsTest, OtherControlEdgesStay) {
  Step step(kPs1, kWorker0);
  step.g.After(step.apply, step.g.Aten("other", {}, kPs1).node);
  step.Hoist();
  EXPECT_THAT(InputNames(step.g.def, "w/apply"), ElementsAre("w", "w/gradient", "^other"));
}

// What two workers made is summed at the variable: each waits at home.
TEST(HoistTicketsTest, ContributionsToASumWaitEachWhereTheyAreMade) {
  Step step(kPs1, kWorker0);
  const Edge other = step.g.Aten("other", {}, kWorker1);
  const Edge local = step.g.Aten("local", {}, kPs1);
  const int sum = step.g.Add("SumGradients", "sum", {step.gradient, other, local},
                             step.g.at(other.node).outputs, kPs1);
  step.g.at(step.apply).inputs[1] = {.node = sum, .output = 0};
  step.Hoist();
  EXPECT_THAT(InputNames(step.g.def, "sum"), ElementsAre("w/gradient", "w/gradient_1", "local"));
  EXPECT_THAT(InputNames(step.g.def, "w/apply"), ElementsAre("w", "sum"));
  EXPECT_EQ(step.g.node("w/gradient_1").device, kWorker1);
}

TEST(HoistTicketsTest, AnAbsentGradientLeavesTheApplyWaiting) {
  Step step(kPs1, kWorker0);
  const int sum = step.g.Add("SumGradients", "sum", {}, step.g.node("gradient").outputs, kPs1);
  step.g.at(step.apply).inputs[1] = {.node = sum, .output = 0};
  step.Hoist();
  EXPECT_THAT(InputNames(step.g.def, "w/apply"), ElementsAre("w", "sum", "^ticket"));
}

// ps 0 and ps 1 need no connection between them.
TEST(HoistTicketsTest, TheNumberOfTheStepComesWithTheGradient) {
  Step step(kPs1, kWorker0);
  step.TellStep();
  step.Hoist();
  EXPECT_THAT(InputNames(step.g.def, "w/apply"), ElementsAre("w", "w/gradient", "ticket/relay"));
  EXPECT_THAT(InputNames(step.g.def, "ticket/relay"), ElementsAre("ticket"));
  EXPECT_EQ(step.g.node("ticket/relay").device, kWorker0);
}

TEST(HoistTicketsTest, TheNumberOfTheStepIsNotRelayedWhereTheTicketIs) {
  Step beside_variable(kPs0, kWorker0);
  beside_variable.TellStep();
  beside_variable.Hoist();
  EXPECT_THAT(InputNames(beside_variable.g.def, "w/apply"),
              ElementsAre("w", "w/gradient", "ticket"));
  Step beside_gradient(kPs1, kPs1);
  beside_gradient.TellStep();
  beside_gradient.Hoist();
  EXPECT_THAT(InputNames(beside_gradient.g.def, "w/apply"),
              ElementsAre("w", "gradient", "ticket", "^ticket"));
}

}  // namespace
}  // namespace weir::graph
