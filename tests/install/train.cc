// Learns y = 3x - 1 by two workers and a parameter server; fails if it did not.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "neighbours.h"
#include "weir/weir.h"

int main(int argc, char** argv) {
  CheckNeighbours();
  auto job = weir::Job::FromCommandLine(&argc, argv);
  if (!job.ok()) return weir::Exit(job.status());
  if (job->is_ps()) return job->Serve();

  weir::Graph graph;
  const auto x = graph.Placeholder("x", at::kFloat, {-1});
  const auto y = graph.Placeholder("y", at::kFloat, {-1});
  weir::Output loss;
  {
    weir::DeviceScope scope(graph, job->ReplicaDeviceSetter());
    const auto slope = graph.Variable("slope", weir::Zeros({}));
    const auto offset = graph.Variable("offset", weir::Zeros({}));
    loss = weir::ops::mse_loss(x * slope + offset, y);
  }
  const auto train = job->strategy().Minimize(weir::Adam{.learning_rate = 0.01}, loss);

  auto session = job->OpenSession(graph);
  if (!session.ok()) return weir::Exit(session.status());
  const at::Tensor inputs = at::linspace(-1, 1, 64);
  const std::vector<weir::Feed> feeds = {{x, inputs}, {y, inputs * 3 - 1}};
  while (!session->ShouldStop()) {
    const auto result = session->Run(feeds, {loss}, {train});
    if (absl::IsOutOfRange(result.status())) break;
    if (!result.ok()) return weir::Exit(result.status());
  }
  const auto result = session->Run(feeds, {loss});
  if (!result.ok()) return weir::Exit(result.status());
  const double reached = (*result)[0].item<double>();
  job->Report("loss", reached);
  return reached < 1e-3 ? 0 : weir::Exit(absl::InternalError("the loss is still above 0.001"));
}
