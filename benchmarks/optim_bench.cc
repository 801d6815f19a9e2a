// How long one update of a large variable takes, beside a memcpy of the same size.
//
//   optim_bench [floats [rounds [threads]]]
//
// Rounds are interleaved, so that whatever else the machine does falls on all alike; the table
// gives the least, the median and the greatest time of each.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "optim/update_rule.h"
#include "store/variable.h"

namespace {

struct Contestant {
  std::string name;
  std::function<void()> run;
  std::vector<double> milliseconds = {};
};

std::shared_ptr<weir::store::Variable> NewVariable(std::int64_t floats) {
  weir::store::VariableDef def;
  def.name = "w";
  def.initializer.shape = {floats};
  auto variable = std::make_shared<weir::store::Variable>(std::move(def));
  WEIR_CHECK(variable->Initialize().ok());
  return variable;
}

Contestant Rule(const std::string& name, const weir::OptimizerSpec& spec,
                const at::Tensor& gradient) {
  auto rule = weir::optim::MakeUpdateRule(spec, name, NewVariable(gradient.numel()));
  WEIR_CHECK(rule.ok());
  std::shared_ptr<weir::optim::UpdateRule> shared = std::move(rule).value();
  return {name, [shared, gradient] { WEIR_CHECK(shared->ApplyDense(gradient, /*step=*/1).ok()); }};
}

void Time(Contestant& contestant) {
  const auto start = std::chrono::steady_clock::now();
  contestant.run();
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - start;
  contestant.milliseconds.push_back(elapsed.count());
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t floats = argc > 1 ? std::atoll(argv[1]) : 25'000'000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 15;
  at::set_num_threads(argc > 3 ? std::atoi(argv[3]) : 1);
  if (floats < 0 || rounds < 1) {
    std::fprintf(stderr, "usage: optim_bench [floats [rounds [threads]]]\n");
    return 2;
  }

  const at::Tensor gradient = at::full({floats}, 1e-3f);
  const at::Tensor copy = at::zeros({floats});
  std::vector<Contestant> contestants;
  contestants.push_back(
      {"memcpy",
       [&] { std::memcpy(copy.mutable_data_ptr(), gradient.const_data_ptr(), copy.nbytes()); }});
  contestants.push_back(Rule("sgd", weir::Sgd{}, gradient));
  contestants.push_back(Rule("momentum", weir::Momentum{}, gradient));
  contestants.push_back(Rule("nesterov", weir::Momentum{.use_nesterov = true}, gradient));
  contestants.push_back(Rule("adam", weir::Adam{}, gradient));

  for (int round = 0; round < rounds; ++round) {
    for (Contestant& contestant : contestants) Time(contestant);
  }
  std::printf("%lld floats, %d threads, %d rounds, ms\n%-10s %8s %8s %8s\n",
              static_cast<long long>(floats), at::get_num_threads(), rounds, "", "min", "median",
              "max");
  for (Contestant& contestant : contestants) {
    std::vector<double>& times = contestant.milliseconds;
    std::sort(times.begin(), times.end());
    std::printf("%-10s %8.3f %8.3f %8.3f\n", contestant.name.c_str(), times.front(),
                times[times.size() / 2], times.back());
  }
  return 0;
}
