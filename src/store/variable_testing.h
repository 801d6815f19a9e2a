// Short ways to make variables in tests.
#pragma once

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/variable.h"

namespace weir::store {

inline Initializer ConstantOf(std::vector<std::int64_t> shape, double value,
                              at::ScalarType dtype = at::kFloat) {
  Initializer initializer;
  initializer.shape = std::move(shape);
  initializer.dtype = dtype;
  initializer.a = value;
  return initializer;
}

inline VariableDef DefOf(Initializer initializer, const std::string& name = "w") {
  VariableDef def;
  def.name = name;
  def.container = "ps";
  def.initializer = std::move(initializer);
  return def;
}

inline std::shared_ptr<Variable> InitializedVariable(VariableDef def) {
  auto variable = std::make_shared<Variable>(std::move(def));
  const absl::Status status = variable->Initialize();
  EXPECT_TRUE(status.ok()) << status;
  return variable;
}

/// `size` float32 elements, all of `value`.
inline std::shared_ptr<Variable> FloatVariable(std::int64_t size, double value = 0) {
  return InitializedVariable(DefOf(ConstantOf({size}, value)));
}

/// A copy of the value now. REQUIRES: initialised.
inline at::Tensor ValueOf(const Variable& variable) {
  return variable.ReadCopy().value().tensor;
}

}  // namespace weir::store
