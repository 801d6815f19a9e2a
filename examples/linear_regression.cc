// The smallest program that trains over a cluster: y = 3x - 1, learned by every worker together.
//
//   weir launch --ps 1 --workers 2 -- build/release/bin/linear_regression --steps 2000
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cstdio>

#include "weir/weir.h"

int main(int argc, char** argv) {
  auto job = weir::Job::FromCommandLine(&argc, argv);
  if (!job.ok()) return weir::Exit(job.status());
  if (job->is_ps()) return job->Serve();

  weir::Graph graph;
  const auto x = graph.Placeholder("x", at::kFloat, {-1});
  const auto y = graph.Placeholder("y", at::kFloat, {-1});
  weir::Output loss;
  weir::Variable slope, offset;
  {
    weir::DeviceScope scope(graph,
                            job->ReplicaDeviceSetter());  // variables on the ps, the rest here
    slope = graph.Variable("slope", weir::Zeros({}));
    offset = graph.Variable("offset", weir::Zeros({}));
    loss = weir::ops::mse_loss(x * slope + offset, y);
  }
  const auto train = job->strategy().Minimize(weir::Sgd{.learning_rate = 0.1}, loss);

  auto session = job->OpenSession(graph);
  if (!session.ok()) return weir::Exit(session.status());
  while (!session->ShouldStop()) {
    const at::Tensor inputs = at::rand({32});
    const auto result = session->Run({{x, inputs}, {y, inputs * 3 - 1}}, {loss}, {train});
    if (absl::IsOutOfRange(result.status())) break;  // the others have made the last steps
    if (!result.ok()) return weir::Exit(result.status());
  }
  const auto learned = session->Run({}, {slope, offset});
  if (!learned.ok()) return weir::Exit(learned.status());
  std::printf("y = %.3f x %+.3f\n", (*learned)[0].item<double>(), (*learned)[1].item<double>());
}
