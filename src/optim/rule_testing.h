// Short ways to make variables and rules in tests.
#pragma once

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "optim/update_rule.h"
#include "store/variable_testing.h"

namespace weir::optim {

/// A variable that starts as a copy of `value`.
inline std::shared_ptr<store::Variable> VariableOf(const at::Tensor& value) {
  auto variable = std::make_shared<store::Variable>(
      store::DefOf(store::ConstantOf(value.sizes().vec(), 0, value.scalar_type())));
  EXPECT_TRUE(variable->Assign(value).ok());
  return variable;
}

inline std::unique_ptr<UpdateRule> RuleOf(const OptimizerSpec& spec,
                                          std::shared_ptr<store::Variable> variable,
                                          const std::string& scope = "scope") {
  auto rule = MakeUpdateRule(spec, scope, std::move(variable));
  EXPECT_TRUE(rule.ok()) << rule.status();
  return std::move(rule).value();
}

inline void Apply(UpdateRule& rule, const at::Tensor& gradient, std::int64_t step = 0) {
  const auto version = rule.ApplyDense(gradient, step);
  ASSERT_TRUE(version.ok()) << version.status();
}

/// Values for rows: those of `indices` of the variable.
inline void ApplyRows(UpdateRule& rule, const std::vector<std::int64_t>& indices,
                      const at::Tensor& values, std::int64_t step = 0) {
  const auto version =
      rule.ApplySparse({.indices = at::tensor(indices, at::kLong), .values = values}, step);
  ASSERT_TRUE(version.ok()) << version.status();
}

/// The largest difference of two tensors, element by element.
inline double MaxDifference(const at::Tensor& a, const at::Tensor& b) {
  return at::max(at::abs(at::sub(a.to(at::kDouble), b.to(at::kDouble)))).item<double>();
}

}  // namespace weir::optim
