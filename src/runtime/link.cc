#include "runtime/link.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "store/dense.h"
#include "tensor/tensor_buffer.h"

namespace weir::runtime {

using transport::FrameHeader;
using transport::FrameType;

void Link::Greet(std::shared_ptr<transport::Connection> connection, const Context& context,
                 const TaskId& peer, std::uint64_t peer_incarnation, TimePoint deadline,
                 DialDone done) {
  std::shared_ptr<Link> link(new Link(std::move(connection), context));
  link->dialled_ = true;
  link->dialled_peer_ = peer;
  link->dialled_incarnation_ = peer_incarnation;
  link->dial_done_ = std::move(done);
  const Hello hello = {.cluster_id = context.self.cluster_id,
                       .from = context.self.task,
                       .from_incarnation = context.self.incarnation,
                       .to = peer,
                       .to_incarnation = peer_incarnation,
                       .features = 0,
                       .token = {},
                       .status = absl::OkStatus()};
  link->Send(FrameType::kHello, {}, 0, Encode(hello));
  link->StartGreeting(deadline);
}

void Link::Await(std::shared_ptr<transport::Connection> connection, const Context& context,
                 TimePoint deadline) {
  std::shared_ptr<Link> link(new Link(std::move(connection), context));
  link->StartGreeting(deadline);
}

void Link::StartGreeting(TimePoint deadline) {
  // The timer knows the connection only: closing a connection twice, or long after, is harmless.
  greeting_timer_ = context_.scheduler->PostAt(deadline, [weak = std::weak_ptr(connection_)] {
    if (auto connection = weak.lock())
      connection->Close(absl::DeadlineExceededError("no answer to the greeting in time"));
  });
  connection_->Start(shared_from_this());
}

absl::StatusOr<Buffer> Link::OnPayload(const FrameHeader& header, std::span<const std::byte> body) {
  if (state_ != State::kUp || header.type != FrameType::kTensor) {
    return absl::InvalidArgumentError("a payload where none belongs");
  }
  WEIR_ASSIGN_OR_RETURN(incoming_, DecodeTensorHeader(body, header.payload_bytes));
  return context_.sink->OnTensorPayload(*this, {header.origin, header.step}, header.edge,
                                        *incoming_);
}

absl::Status Link::OnFrame(const FrameHeader& header, std::span<const std::byte> body,
                           Buffer payload) {
  if (context_.traffic != nullptr) {
    context_.traffic->bytes_in.fetch_add(transport::kHeaderBytes + body.size() + payload.size,
                                         std::memory_order_relaxed);
  }
  switch (state_) {
    case State::kGreeting:
      if (header.type == FrameType::kHello && !dialled_) return OnHello(body);
      if (header.type == FrameType::kHelloAck && dialled_) return OnHelloAck(body);
      return absl::InvalidArgumentError("a frame before the hello");
    case State::kUp:
      return OnUpFrame(header, body, std::move(payload));
    case State::kClosed:
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status Link::OnHello(std::span<const std::byte> body) {
  WEIR_ASSIGN_OR_RETURN(const Hello hello, DecodeHello(body));
  const Claim claim = {.cluster_id = hello.cluster_id,
                       .from = hello.from,
                       .to = hello.to,
                       .to_incarnation = hello.to_incarnation};
  const absl::Status verdict = context_.cluster == nullptr
                                   ? absl::FailedPreconditionError("this end takes no calls")
                                   : CheckClaim(claim, context_.self, *context_.cluster);
  const Hello ack = {.cluster_id = context_.self.cluster_id,
                     .from = context_.self.task,
                     .from_incarnation = context_.self.incarnation,
                     .to = hello.from,
                     .to_incarnation = hello.from_incarnation,
                     .features = 0,
                     .token = {},
                     .status = verdict};
  Send(FrameType::kHelloAck, {}, 0, Encode(ack));
  if (!verdict.ok()) {
    refusal_ = Annotate(verdict, hello.from.job.empty() ? "a client" : hello.from.ToString());
    connection_->Close(absl::OkStatus());  // the ack is flushed: the other end prints the reason
    return absl::OkStatus();
  }
  SetUp(hello);
  return absl::OkStatus();
}

absl::Status Link::OnHelloAck(std::span<const std::byte> body) {
  WEIR_ASSIGN_OR_RETURN(const Hello ack, DecodeHello(body));
  absl::Status verdict = ack.status;
  if (verdict.ok() && !dialled_peer_.job.empty() && ack.from != dialled_peer_) {
    verdict = absl::FailedPreconditionError(absl::StrFormat("expected %s, found %s at %s",
                                                            dialled_peer_.ToString(),
                                                            ack.from.ToString(), peer_address()));
  }
  if (verdict.ok() && dialled_incarnation_ != 0 && ack.from_incarnation != dialled_incarnation_) {
    verdict = absl::AbortedError(
        absl::StrFormat("%s was restarted while it was dialled", ack.from.ToString()));
  }
  WEIR_RETURN_IF_ERROR(verdict);
  SetUp(ack);
  FinishDial(shared_from_this());
  return absl::OkStatus();
}

void Link::SetUp(const Hello& hello) {
  if (greeting_timer_) greeting_timer_->Cancel();
  peer_ = {
      .cluster_id = hello.cluster_id, .task = hello.from, .incarnation = hello.from_incarnation};
  state_ = State::kUp;
  context_.sink->OnLinkUp(shared_from_this());
}

absl::Status Link::OnUpFrame(const FrameHeader& header, std::span<const std::byte> body,
                             Buffer payload) {
  const store::StepId step = {header.origin, header.step};
  switch (header.type) {
    case FrameType::kTensor: {
      if (header.payload_bytes == 0) {
        WEIR_ASSIGN_OR_RETURN(incoming_, DecodeTensorHeader(body, 0));
        WEIR_ASSIGN_OR_RETURN(payload,
                              context_.sink->OnTensorPayload(*this, step, header.edge, *incoming_));
      }
      Value value;
      value.version = incoming_->version;
      if (incoming_->dtype == at::ScalarType::Bool) {
        WEIR_RETURN_IF_ERROR(CheckBools({payload.data, payload.size}));
      }
      if (incoming_->dtype != at::ScalarType::Undefined) {
        value.tensor = TensorOverBuffer(std::move(payload), incoming_->dims, incoming_->dtype);
      }
      return context_.sink->OnTensor(*this, step, header.edge, std::move(value));
    }
    case FrameType::kRun: {
      WEIR_ASSIGN_OR_RETURN(const RunMessage message, DecodeRun(body));
      return context_.sink->OnRun(shared_from_this(), step, message);
    }
    case FrameType::kDone: {
      WEIR_ASSIGN_OR_RETURN(const DoneMessage message, DecodeDone(body));
      return context_.sink->OnDone(*this, step, message);
    }
    case FrameType::kAbort: {
      const absl::Status reason = DecodeAbort(body);
      return context_.sink->OnAbort(*this, step, reason);
    }
    case FrameType::kHello:
    case FrameType::kHelloAck:
      break;
  }
  return absl::InvalidArgumentError("a second hello");
}

void Link::OnClosed(const absl::Status& reason) {
  const State before = std::exchange(state_, State::kClosed);
  if (greeting_timer_) greeting_timer_->Cancel();
  absl::Status why = reason.ok() ? absl::UnavailableError("the connection was closed") : reason;
  if (before == State::kUp) {
    context_.sink->OnLinkDown(shared_from_this(), why);
  } else if (before == State::kGreeting && !dialled_) {
    context_.sink->OnLinkRefused(peer_address(), refusal_.ok() ? why : refusal_);
  }
  FinishDial(
      Annotate(why, "greeting " + (dialled_peer_.job.empty()
                                       ? peer_address()
                                       : dialled_peer_.ToString() + " at " + peer_address())));
}

void Link::FinishDial(absl::StatusOr<std::shared_ptr<Link>> result) {
  if (auto done = std::exchange(dial_done_, nullptr)) done(std::move(result));
}

void Link::SendTensor(const store::StepId& step, std::uint32_t edge, const Value& value) {
  TensorHeader header{.dtype = at::ScalarType::Undefined, .version = value.version, .dims = {}};
  Buffer payload;
  if (value.tensor.defined()) {
    const at::Tensor tensor = store::ToPlain(value.tensor);
    header.dtype = tensor.scalar_type();
    header.dims.assign(tensor.sizes().begin(), tensor.sizes().end());
    payload = BufferOfTensor(tensor);
  }
  Send(FrameType::kTensor, step, edge, EncodeTensorHeader(header), std::move(payload));
}

void Link::SendRun(const store::StepId& step, const RunMessage& message) {
  Send(FrameType::kRun, step, 0, Encode(message));
}

void Link::SendDone(const store::StepId& step, const DoneMessage& message) {
  Send(FrameType::kDone, step, 0, Encode(message));
}

void Link::SendAbort(const store::StepId& step, const absl::Status& reason) {
  Send(FrameType::kAbort, step, 0, Encode(reason));
}

void Link::Send(FrameType type, const store::StepId& step, std::uint32_t edge, std::string body,
                Buffer payload) {
  if (context_.traffic != nullptr) {
    context_.traffic->bytes_out.fetch_add(transport::kHeaderBytes + body.size() + payload.size,
                                          std::memory_order_relaxed);
  }
  transport::Frame frame;
  frame.header.type = type;
  frame.header.edge = edge;
  frame.header.origin = step.origin;
  frame.header.step = step.step;
  frame.body = std::move(body);
  frame.payload = std::move(payload);
  connection_->Send(std::move(frame));
}

}  // namespace weir::runtime
