// Averages of variables over the steps, to evaluate with or to keep: less noisy than the last
// value.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "weir/graph.h"
#include "weir/optimizer.h"

namespace weir {

/// The averages of some variables of one graph. Each is a variable of its own, named
/// "<variable>/ExponentialMovingAverage", not trainable, on the task of its variable and cut as it
/// is, so that nothing crosses the network to keep it; it starts with the variable's own first
/// value. Built like the rest of the graph, by one thread; errors collect in the graph.
///
///   const Operation train = job->strategy().Minimize(Adam{}, loss);
///   MovingAverages averages(graph, graph.trainable_variables(), {.decay = 0.99});
///   const Operation step = averages.UpdateAfter(train);  // run this one instead of `train`
///   ... session->Run({}, {averages.of(w)}, {});
class MovingAverages {
 public:
  /// Variables are float32 or float64: else InvalidArgument when the session is opened. `graph`
  /// must outlive this.
  MovingAverages(Graph& graph, const std::vector<Variable>& variables,
                 const MovingAverage& options = {});

  /// The target that runs `step` and then moves every average towards its variable. An average
  /// waits for its own variable's update in `step` where that is one of `step`'s own (as those of
  /// Strategy::Minimize), else for all of it. Once for a graph.
  Operation UpdateAfter(Operation step);

  /// The average of `variable`; an error of the graph, and a Variable that was never made, when
  /// there is none.
  Variable of(const Variable& variable) const;

 private:
  void Add(const Variable& variable);
  Operation AddUpdate(const Variable& variable, const Variable& average, Operation after,
                      Output step_number) const;

  Graph& graph_;
  MovingAverage options_;
  std::vector<Variable> variables_;
  std::map<std::string, Variable> averages_;  // by the variable's name
};

}  // namespace weir
