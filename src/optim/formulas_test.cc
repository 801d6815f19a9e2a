// The rules without literals in the original's tests, against their formulas as its tests write
// them in numpy, for dense and for sparse gradients: float64 to 1e-12, float32 to 2e-5 of the
// formula in float64. An update rounds some ten times by 6e-8 each, what it subtracts is as large
// as the weights, and there are twenty: 1.2e-5 if every one goes the same way.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "optim/rule_testing.h"

namespace weir::optim {
namespace {

/// One element: its weight, and what its formula remembers.
struct Element {
  double w = 0;
  double a = 0, b = 0, c = 0;
};

/// Element, gradient, number of the update from 1.
using Formula = std::function<void(Element&, double, int)>;

struct Case {
  std::string name;
  OptimizerSpec spec;
  Formula formula;
  Element first;
  /// By slot: the member of Element it must equal.
  std::vector<std::pair<std::string, double Element::*>> slots;
  bool moves_every_row = false;
};

double Sign(double x) {
  return x > 0 ? 1 : x < 0 ? -1 : 0;
}

void Adamlike(Element& e, double g) {
  e.a = 0.9 * e.a + (1 - 0.9) * g;
  e.b = 0.999 * e.b + (1 - 0.999) * g * g;
}

Formula AdamFormula(double lr, double epsilon) {
  return [=](Element& e, double g, int t) {
    Adamlike(e, g);
    const double alpha = lr * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
    e.w -= alpha * e.a / (std::sqrt(e.b) + epsilon);
  };
}

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {"Sgd", Sgd{.learning_rate = 0.3}, [](Element& e, double g, int) { e.w -= 0.3 * g; }, {}, {}},
      {"Momentum",
       Momentum{.learning_rate = 0.3, .momentum = 0.8},
       [](Element& e, double g, int) {
         e.a = 0.8 * e.a + g;
         e.w -= 0.3 * e.a;
       },
       {},
       {{"momentum", &Element::a}}},
      {"Nesterov",
       Momentum{.learning_rate = 0.3, .momentum = 0.8, .use_nesterov = true},
       [](Element& e, double g, int) {
         e.a = 0.8 * e.a + g;
         e.w -= 0.3 * (g + 0.8 * e.a);
       },
       {},
       {{"momentum", &Element::a}}},
      {"Adagrad",
       Adagrad{.learning_rate = 0.3, .initial_accumulator_value = 0.2},
       [](Element& e, double g, int) {
         e.a += g * g;
         e.w -= 0.3 * g / std::sqrt(e.a);
       },
       {.a = 0.2},
       {{"accumulator", &Element::a}}},
      {"Adadelta",
       Adadelta{.learning_rate = 0.3, .rho = 0.9, .epsilon = 1e-4},
       [](Element& e, double g, int) {
         e.a = 0.9 * e.a + 0.1 * g * g;
         const double u = std::sqrt(e.b + 1e-4) / std::sqrt(e.a + 1e-4) * g;
         e.w -= 0.3 * u;
         e.b = 0.9 * e.b + 0.1 * u * u;
       },
       {},
       {{"accum", &Element::a}, {"accum_update", &Element::b}}},
      {"RmsProp",
       RmsProp{.learning_rate = 0.3, .decay = 0.8, .momentum = 0.5, .epsilon = 1e-4},
       [](Element& e, double g, int) {
         e.a = 0.8 * e.a + 0.2 * g * g;
         e.b = 0.5 * e.b + 0.3 * g / std::sqrt(e.a + 1e-4);
         e.w -= e.b;
       },
       {.a = 1},
       {{"rms", &Element::a}, {"momentum", &Element::b}}},
      {"CenteredRmsProp",
       RmsProp{
           .learning_rate = 0.3, .decay = 0.8, .momentum = 0.5, .epsilon = 1e-4, .centered = true},
       [](Element& e, double g, int) {
         e.a = 0.8 * e.a + 0.2 * g * g;
         e.c = 0.8 * e.c + 0.2 * g;
         e.b = 0.5 * e.b + 0.3 * g / std::sqrt(e.a - e.c * e.c + 1e-4);
         e.w -= e.b;
       },
       {.a = 1},
       {{"rms", &Element::a}, {"momentum", &Element::b}, {"mg", &Element::c}}},
      {"AdagradDa",
       AdagradDa{.learning_rate = 0.3,
                 .initial_gradient_squared_accumulator_value = 0.2,
                 .l1 = 0.05,
                 .l2 = 0.4},
       [](Element& e, double g, int t) {
         e.a += g;
         e.b += g * g;
         e.w = -Sign(e.a) * 0.3 * std::max(std::abs(e.a) - 0.05 * t, 0.0) /
               (0.4 * t * 0.3 + std::sqrt(e.b));
       },
       {.b = 0.2},
       {{"gradient_accumulator", &Element::a}, {"gradient_squared_accumulator", &Element::b}}},
      {"FtrlOfAnyPower",
       Ftrl{.learning_rate = 0.3,
            .learning_rate_power = -0.3,
            .initial_accumulator_value = 0.2,
            .l1 = 0.1,
            .l2 = 0.2,
            .l2_shrinkage = 0.4},
       [](Element& e, double g, int) {
         const double n = e.a + g * g;
         e.b += g + 2 * 0.4 * e.w - (std::pow(n, 0.3) - std::pow(e.a, 0.3)) / 0.3 * e.w;
         e.w =
             std::abs(e.b) > 0.1 ? (Sign(e.b) * 0.1 - e.b) / (std::pow(n, 0.3) / 0.3 + 2 * 0.2) : 0;
         e.a = n;
       },
       {.a = 0.2},
       {{"accum", &Element::a}, {"linear", &Element::b}}},
      {"ProximalGradientDescent",
       ProximalGradientDescent{.learning_rate = 0.3, .l1 = 0.1, .l2 = 0.2},
       [](Element& e, double g, int) {
         const double v = e.w - 0.3 * g;
         e.w = Sign(v) * std::max(std::abs(v) - 0.3 * 0.1, 0.0) / (1 + 0.3 * 0.2);
       },
       {},
       {}},
      {"ProximalAdagrad",
       ProximalAdagrad{
           .learning_rate = 0.3, .initial_accumulator_value = 0.2, .l1 = 0.1, .l2 = 0.2},
       [](Element& e, double g, int) {
         e.a += g * g;
         const double rate = 0.3 / std::sqrt(e.a);
         const double v = e.w - rate * g;
         e.w = Sign(v) * std::max(std::abs(v) - rate * 0.1, 0.0) / (1 + rate * 0.2);
       },
       {.a = 0.2},
       {{"accumulator", &Element::a}}},
      {"Adam",
       Adam{.learning_rate = 0.3, .epsilon = 1e-3},
       AdamFormula(0.3, 1e-3),
       {},
       {{"m", &Element::a}, {"v", &Element::b}},
       /*moves_every_row=*/true},
      {"LazyAdam",
       LazyAdam{.learning_rate = 0.3, .epsilon = 1e-3},
       AdamFormula(0.3, 1e-3),
       {},
       {{"m", &Element::a}, {"v", &Element::b}}},
      {"AdamW",
       AdamW{.learning_rate = 0.3, .epsilon = 1e-3, .weight_decay = 0.2},
       [](Element& e, double g, int t) {
         Adamlike(e, g);
         e.w -= 0.3 * 0.2 * e.w;
         const double m = e.a / (1 - std::pow(0.9, t));
         const double v = e.b / (1 - std::pow(0.999, t));
         e.w -= 0.3 * m / (std::sqrt(v) + 1e-3);
       },
       {},
       {{"m", &Element::a}, {"v", &Element::b}}},
  };
  return cases;
}

constexpr std::int64_t kRows = 5;
constexpr std::int64_t kWidth = 3;

double Tolerance(at::ScalarType dtype) {
  return dtype == at::kDouble ? 1e-12 : 2e-5;
}

/// Normal numbers in float64 that are ones of `dtype`, too.
at::Tensor Draw(const std::vector<std::int64_t>& shape, at::ScalarType dtype) {
  return at::randn(shape, at::kDouble).to(dtype).to(at::kDouble);
}

std::string NameOf(at::ScalarType dtype) {
  return dtype == at::kDouble ? "Float64" : "Float32";
}

class FormulasTest : public testing::TestWithParam<std::tuple<Case, at::ScalarType>> {
 protected:
  FormulasTest() {
    at::manual_seed(7);
    const at::Tensor start = Draw({kRows, kWidth}, dtype());
    variable_ = VariableOf(start.to(dtype()));
    rule_ = RuleOf(tested().spec, variable_);
    for (std::int64_t i = 0; i < kRows * kWidth; ++i) {
      elements_.push_back(tested().first);
      elements_.back().w = start.const_data_ptr<double>()[i];
    }
  }

  static const Case& tested() { return std::get<0>(GetParam()); }
  static at::ScalarType dtype() { return std::get<1>(GetParam()); }

  void ExpectEqual() const {
    Compare(store::ValueOf(*variable_), &Element::w, "w");
    const auto slots = variable_->slots();
    for (const auto& [name, member] : tested().slots)
      Compare(slots.at("scope/" + name), member, name);
  }

  void Compare(const at::Tensor& got, double Element::* member, const std::string& name) const {
    const at::Tensor all = got.to(at::kDouble);
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      const double expected = elements_[i].*member;
      ASSERT_NEAR(all.const_data_ptr<double>()[i], expected,
                  Tolerance(dtype()) * std::max(1.0, std::abs(expected)))
          << name << " of element " << i;
    }
  }

  std::shared_ptr<store::Variable> variable_;
  std::unique_ptr<UpdateRule> rule_;
  std::vector<Element> elements_;
};

TEST_P(FormulasTest, Dense) {
  for (int step = 0; step < 20; ++step) {
    const at::Tensor gradient = Draw({kRows, kWidth}, dtype());
    Apply(*rule_, gradient.to(dtype()), step);
    for (std::size_t i = 0; i < elements_.size(); ++i)
      tested().formula(elements_[i], gradient.const_data_ptr<double>()[i], step + 1);
  }
  ExpectEqual();
}

// Rows 4, 1 and again 4: the others have no gradient, which only some rules take for zero.
TEST_P(FormulasTest, Sparse) {
  for (int step = 0; step < 20; ++step) {
    const at::Tensor values = Draw({3, kWidth}, dtype());
    ApplyRows(*rule_, {4, 1, 4}, values.to(dtype()), step);
    const at::Tensor sums = at::zeros({kRows, kWidth}, at::kDouble);
    sums.index_add_(0, at::tensor({4, 1, 4}, at::kLong), values);
    for (std::int64_t i = 0; i < kRows * kWidth; ++i) {
      const std::int64_t row = i / kWidth;
      if (row != 4 && row != 1 && !tested().moves_every_row) continue;
      tested().formula(elements_[static_cast<std::size_t>(i)], sums.const_data_ptr<double>()[i],
                       step + 1);
    }
  }
  ExpectEqual();
}

// An update without any row is still an update.
TEST_P(FormulasTest, NoRowsAtAll) {  // C5-14
  ApplyRows(*rule_, {}, at::zeros({0, kWidth}, dtype()));
  if (tested().moves_every_row)
    for (Element& element : elements_) tested().formula(element, 0, 1);
  ExpectEqual();
  EXPECT_EQ(variable_->version(), 2u);  // the test's Assign, and this one
}

constexpr at::ScalarType kDtypes[] = {at::kFloat, at::kDouble};

INSTANTIATE_TEST_SUITE_P(All, FormulasTest,
                         testing::Combine(testing::ValuesIn(Cases()), testing::ValuesIn(kDtypes)),
                         [](const auto& tested) {
                           return std::get<0>(tested.param).name +
                                  NameOf(std::get<1>(tested.param));
                         });

// The ratio of norms is the whole variable's, so LAMB is no matter of one element.
class LambTest : public testing::TestWithParam<at::ScalarType> {
 protected:
  static constexpr double kRate = 0.3, kEpsilon = 1e-3, kDecay = 0.2;

  void Step(const at::Tensor& gradient, int t) {
    m_ = 0.9 * m_ + 0.1 * gradient;
    v_ = 0.999 * v_ + 0.001 * gradient * gradient;
    const at::Tensor r =
        m_ / (1 - std::pow(0.9, t)) / (at::sqrt(v_ / (1 - std::pow(0.999, t))) + kEpsilon) +
        kDecay * w_;
    const double from = at::norm(w_).item<double>();
    const double to = at::norm(r).item<double>();
    w_ = w_ - kRate * (from > 0 && to > 0 ? from / to : 1) * r;
  }

  void ExpectEqual(const store::Variable& variable) const {
    const double tolerance = Tolerance(GetParam());
    EXPECT_LT(MaxDifference(store::ValueOf(variable), w_), tolerance);
    EXPECT_LT(MaxDifference(variable.slots().at("scope/m"), m_), tolerance);
    EXPECT_LT(MaxDifference(variable.slots().at("scope/v"), v_), tolerance);
  }

  static at::Tensor Cast(const at::Tensor& tensor) { return tensor.to(GetParam()); }

  const OptimizerSpec spec_ =
      Lamb{.learning_rate = kRate, .epsilon = kEpsilon, .weight_decay = kDecay};
  at::Tensor w_ =
      Cast(at::linspace(-1, 1, 15, at::kDouble).reshape({kRows, kWidth})).to(at::kDouble);
  at::Tensor m_ = at::zeros({kRows, kWidth}, at::kDouble);
  at::Tensor v_ = at::zeros({kRows, kWidth}, at::kDouble);
};

TEST_P(LambTest, FollowsTheFormula) {
  const auto variable = VariableOf(Cast(w_));
  const auto rule = RuleOf(spec_, variable);
  at::manual_seed(8);
  for (int t = 1; t <= 20; ++t) {
    const at::Tensor gradient = Draw({kRows, kWidth}, GetParam());
    Apply(*rule, Cast(gradient));
    Step(gradient, t);
  }
  ExpectEqual(*variable);
}

TEST_P(LambTest, ASparseGradientCountsAsZeroElsewhere) {
  const auto variable = VariableOf(Cast(w_));
  const auto rule = RuleOf(spec_, variable);
  for (int t = 1; t <= 5; ++t) {
    const at::Tensor values = at::full({2, kWidth}, 0.5 * t, at::kDouble);
    ApplyRows(*rule, {0, 3}, Cast(values));
    const at::Tensor gradient = at::zeros({kRows, kWidth}, at::kDouble);
    gradient.index_add_(0, at::tensor({0, 3}, at::kLong), values);
    Step(gradient, t);
  }
  ExpectEqual(*variable);
}

TEST_P(LambTest, ANormOfZeroIsNoRatio) {
  w_ = at::zeros({kRows, kWidth}, at::kDouble);
  const auto variable = VariableOf(Cast(w_));
  const at::Tensor gradient = at::ones({kRows, kWidth}, at::kDouble);
  Apply(*RuleOf(spec_, variable), Cast(gradient));
  Step(gradient, 1);
  ExpectEqual(*variable);
  EXPECT_NE(store::ValueOf(*variable)[0][0].item<double>(), 0);
}

INSTANTIATE_TEST_SUITE_P(All, LambTest, testing::ValuesIn(kDtypes),
                         [](const auto& tested) { return NameOf(tested.param); });

// Where nothing has been summed up yet the divisor is 0 as well, and TensorFlow's FTRL gives 0.
TEST(FtrlTest, AGradientOfZeroBeforeAnyOtherGivesZero) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const double power : {-0.5, -0.3}) {
      const OptimizerSpec spec = Ftrl{.learning_rate_power = power, .initial_accumulator_value = 0};
      const auto dense = VariableOf(at::ones({9}, dtype));
      Apply(*RuleOf(spec, dense), at::zeros({9}, dtype));
      EXPECT_TRUE(at::equal(store::ValueOf(*dense), at::zeros({9}, dtype)));
      const auto sparse = VariableOf(at::ones({3, 9}, dtype));
      ApplyRows(*RuleOf(spec, sparse), {1}, at::zeros({1, 9}, dtype));
      EXPECT_TRUE(at::equal(store::ValueOf(*sparse)[1], at::zeros({9}, dtype)));
      Apply(*RuleOf(spec, dense), at::ones({9}, dtype));
      EXPECT_LT(at::max(store::ValueOf(*dense)).item<double>(), 0) << "trains on from there";
    }
  }
}

// A gradient that is no number must not look like a weight of zero.
TEST(ShrinkTest, NanStaysNan) {
  for (const OptimizerSpec& spec :
       {OptimizerSpec(Ftrl{.l1 = 1}), OptimizerSpec(ProximalGradientDescent{.l1 = 1}),
        OptimizerSpec(ProximalAdagrad{.l1 = 1}), OptimizerSpec(AdagradDa{.l1 = 1})}) {
    const auto variable = VariableOf(at::ones({2}));
    Apply(*RuleOf(spec, variable), at::full({2}, std::nan("")));
    EXPECT_TRUE(std::isnan(store::ValueOf(*variable)[0].item<float>())) << spec.rule;
  }
}

}  // namespace
}  // namespace weir::optim
