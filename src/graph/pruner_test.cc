#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/op_registry.h"
#include "graph/passes.h"
#include "graph/passes_testing.h"

namespace weir::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kSession[] = "/job:worker/replica:0/task:3/device:CPU:0";

// x -> a -> b -> loss with w; c hangs off b; `train` waits for the apply of w.
TestGraph Model() {
  TestGraph g;
  const Edge x = g.Placeholder("x", {-1, 4}, kWorker0);
  const Edge w = g.Variable("w", {2, 2}, kPs0);
  const Edge read = g.Read(w);
  const Edge a = g.Aten("a", {x}, kWorker0);
  const Edge b = g.Aten("b", {a, read}, kWorker0);
  g.Aten("c", {b, g.Placeholder("y", {}, kWorker0)}, kWorker0);
  g.Group("train", {g.Apply(w, b)}, kWorker0);
  return g;
}

absl::StatusOr<GraphDef> Prune(const TestGraph& graph, const Signature& signature) {
  return PruneGraph(graph.def, signature, {"worker", 3});
}

std::vector<std::string> Names(const GraphDef& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.push_back(node.name);
  return names;
}

TEST(PruneGraphTest, KeepsWhatIsNeeded) {
  const auto pruned = Prune(Model(), {.feeds = {"x"}, .fetches = {"b"}, .targets = {}});
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  EXPECT_THAT(Names(*pruned), ElementsAre("feed/x", "w", "w/read", "a", "b", "fetch/b"));
  EXPECT_THAT(InputNames(*pruned, "a"), ElementsAre("feed/x"));
  EXPECT_THAT(InputNames(*pruned, "fetch/b"), ElementsAre("b"));
  EXPECT_TRUE(IsOrdered(*pruned));
  const Node& feed = NodeNamed(*pruned, "feed/x");
  EXPECT_EQ(feed.device, kSession);
  EXPECT_EQ(AttrOr<std::int64_t>(feed, "index", -1), 0);
  EXPECT_EQ(feed.outputs[0].shape, NodeNamed(Model().def, "x").outputs[0].shape);
  EXPECT_EQ(NodeNamed(*pruned, "fetch/b").device, kSession);
}

TEST(PruneGraphTest, TargetsBringWhatTheyWaitFor) {
  const auto pruned = Prune(Model(), {.feeds = {"x"}, .fetches = {}, .targets = {"train"}});
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  EXPECT_THAT(Names(*pruned), ElementsAre("feed/x", "w", "w/read", "a", "b", "w/apply", "train"));
  EXPECT_THAT(InputNames(*pruned, "train"), ElementsAre("^w/apply"));
}

TEST(PruneGraphTest, FeedingAnyOutputCutsThere) {
  const auto pruned = Prune(Model(), {.feeds = {"a"}, .fetches = {"b", "a"}, .targets = {}});
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  EXPECT_THAT(Names(*pruned), ElementsAre("feed/a", "w", "w/read", "b", "fetch/b", "fetch/a"));
  EXPECT_THAT(InputNames(*pruned, "fetch/a"), ElementsAre("feed/a"));
  EXPECT_FALSE(NodeNamed(*pruned, "feed/a").outputs[0].differentiable);
}

TEST(PruneGraphTest, OtherOutputsOfAFedNodeStay) {
  TestGraph g;
  const Edge split = g.Aten("split", {g.Const("c", kPs0)}, kPs0);
  g.at(split.node).outputs.push_back(g.at(split.node).outputs[0]);
  g.Aten("use", {split, {.node = split.node, .output = 1}}, kPs0);
  const auto pruned =
      Prune(g, {.feeds = {"split:1"}, .fetches = {"use", "split:0"}, .targets = {}});
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  EXPECT_THAT(InputNames(*pruned, "use"), ElementsAre("split", "feed/split_1"));
  EXPECT_THAT(InputNames(*pruned, "fetch/split"), ElementsAre("split"));
}

TEST(PruneGraphTest, AVariablesNameMeansItsRead) {
  const auto fetched = Prune(Model(), {.feeds = {}, .fetches = {"w"}, .targets = {}});
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_THAT(Names(*fetched), ElementsAre("w", "w/read", "fetch/w/read"));
  const auto fed = Prune(Model(), {.feeds = {"w", "x"}, .fetches = {"b"}, .targets = {}});
  ASSERT_TRUE(fed.ok()) << fed.status();
  EXPECT_THAT(Names(*fed), ElementsAre("feed/w/read", "feed/x", "a", "b", "fetch/b"));
}

TEST(PruneGraphTest, AFetchMayBeAskedTwice) {
  const auto pruned = Prune(Model(), {.feeds = {"a"}, .fetches = {"b", "b"}, .targets = {}});
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  EXPECT_THAT(NamesOfOp(*pruned, "Fetch"), ElementsAre("fetch/b", "fetch/b_1"));
  EXPECT_EQ(AttrOr<std::int64_t>(NodeNamed(*pruned, "fetch/b_1"), "index", -1), 1);
}

TEST(PruneGraphTest, AFeedThatNothingNeedsIsLeftOut) {
  const auto pruned = Prune(Model(), {.feeds = {"y", "x"}, .fetches = {"a"}, .targets = {}});
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  EXPECT_THAT(Names(*pruned), ElementsAre("feed/x", "a", "fetch/a"));
  EXPECT_EQ(AttrOr<std::int64_t>(NodeNamed(*pruned, "feed/x"), "index", -1), 1);
}

TEST(PruneGraphTest, NobodyWaitsForAFedPlaceholder) {
  TestGraph g = Model();
  g.After(g.Aten("later", {}, kPs0).node, IndexNamed(g.def, "x"));
  const auto pruned = Prune(g, {.feeds = {"x"}, .fetches = {"later"}, .targets = {"x"}});
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  EXPECT_THAT(InputNames(*pruned, "later"), IsEmpty());
}

TEST(PruneGraphTest, NothingAskedForGivesAnEmptyGraph) {
  const auto pruned = Prune(Model(), {});
  ASSERT_TRUE(pruned.ok());
  EXPECT_THAT(Names(*pruned), IsEmpty());
}

struct BadSignature {
  std::string name;
  Signature signature;
  absl::StatusCode code;
  std::string message;
};

class PruneErrors : public ::testing::TestWithParam<BadSignature> {};

TEST_P(PruneErrors, AreExplained) {
  const absl::Status status = Prune(Model(), GetParam().signature).status();
  EXPECT_EQ(status.code(), GetParam().code);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

const BadSignature kBadSignatures[] = {
    {"UnknownFetch", {{}, {"nobody"}, {}}, absl::StatusCode::kNotFound, "fetch \"nobody\""},
    {"UnknownFeed", {{"nobody:1"}, {}, {}}, absl::StatusCode::kNotFound, "feed \"nobody:1\""},
    {"UnknownTarget", {{}, {}, {"a:0"}}, absl::StatusCode::kNotFound, "target \"a:0\""},
    {"NoSuchOutput",
     {{}, {"b:1"}, {}},
     absl::StatusCode::kNotFound,
     "fetch 'b:1': operation 'b' has only 1 outputs"},
    {"FetchOfNoTensor",
     {{}, {"train"}, {}},
     absl::StatusCode::kInvalidArgument,
     "fetch 'train': operation 'train' (Group) gives no tensor"},
    {"FeedOfNoTensor",
     {{"w/apply"}, {}, {}},
     absl::StatusCode::kInvalidArgument,
     "feed 'w/apply': operation 'w/apply' (Apply) gives no tensor"},
    {"FedTwice", {{"x", "x:0"}, {}, {}}, absl::StatusCode::kInvalidArgument, "'x' is fed twice"},
    {"PlaceholderNotFed",
     {{}, {"c"}, {}},
     absl::StatusCode::kInvalidArgument,
     "You must feed a value for placeholder 'x' with dtype float32 and shape [-1,4], 'y' with "
     "dtype float32 and shape []"},
    {"OddName", {{}, {":"}, {}}, absl::StatusCode::kNotFound, "fetch \":\""},
};

INSTANTIATE_TEST_SUITE_P(All, PruneErrors, ::testing::ValuesIn(kBadSignatures),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace weir::graph
