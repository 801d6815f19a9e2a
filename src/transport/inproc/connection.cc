#include "transport/inproc/connection.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace weir::transport::inproc {
namespace {

constexpr std::size_t kTransferBytesMax = std::size_t{1} << 20;
constexpr std::size_t kCutsMax = 3;

}  // namespace

std::pair<std::shared_ptr<Connection>, std::shared_ptr<Connection>> Connection::NewPair(
    std::shared_ptr<Shared> dialler, std::shared_ptr<Shared> acceptor, int port) {
  const std::shared_ptr<Wire> wire = dialler->wire;
  auto near = std::make_shared<Connection>(dialler, AddressOf(port));
  auto far =
      std::make_shared<Connection>(acceptor, absl::StrCat("inproc:client-", wire->NextClient()));
  near->peer_ = far;
  far->peer_ = near;
  near->Enter(*dialler);
  far->Enter(*acceptor);
  wire->AddAccepted(port, far);
  return {std::move(near), std::move(far)};
}

Connection::Connection(std::shared_ptr<Shared> shared, std::string peer_address)
    : shared_(std::move(shared)),
      peer_address_(std::move(peer_address)),
      strand_(shared_->wire->scheduler()),
      decoder_(std::in_place, kTransferBytesMax) {}

Connection::~Connection() {
  if (finished_) return;
  shared_->registry.Remove(this);
  if (const std::shared_ptr<Connection> peer = peer_.lock()) {
    peer->Arrive({{.kind = Delivery::Kind::kEnd, .frame = nullptr}});
  }
}

void Connection::Enter(Shared& shared) {
  const auto close = [weak = weak_from_this()] {
    if (const std::shared_ptr<Connection> self = weak.lock()) {
      self->Close(absl::CancelledError("the transport was closed"));
    }
  };
  if (!shared.registry.Add(this, close)) close();
}

void Connection::Start(std::shared_ptr<FrameHandler> handler) {
  {
    MutexLock lock(mutex_);
    WEIR_CHECK(!start_called_);
    start_called_ = true;
  }
  if (!shared_->callbacks.EnterUntilEmpty()) return;
  strand_.Post([self = shared_from_this(), handler = std::move(handler)]() mutable {
    self->StartFromStrand(std::move(handler));
  });
}

void Connection::Send(Frame frame) {
  FrameHeader header = frame.header;
  header.body_bytes = static_cast<std::uint32_t>(frame.body.size());
  header.payload_bytes = frame.payload.size;
  auto sealed = std::make_shared<const SealedFrame>(Seal(std::move(frame)));
  {
    MutexLock lock(mutex_);
    if (close_requested_ || sending_is_lost_) return;
  }
  const std::shared_ptr<Connection> peer = peer_.lock();
  if (peer == nullptr) return;
  peer->Arrive(Deliveries(std::move(sealed), shared_->wire->DecideFate(header)));
}

/// What the peer gets of `frame`.
std::vector<Connection::Delivery> Connection::Deliveries(std::shared_ptr<const SealedFrame> frame,
                                                         Fate fate) {
  const std::size_t size = frame->size();
  std::vector<Delivery> out;
  const auto add = [&](std::size_t begin, std::size_t end) {
    out.push_back({.kind = Delivery::Kind::kBytes, .frame = frame, .begin = begin, .end = end});
  };
  const auto draw_inside = [&] { return 1 + shared_->wire->Draw(size - 1); };
  if (fate == Fate::kSplit) {
    std::set<std::size_t> ends = {size};
    for (std::size_t i = 0; i < kCutsMax; ++i) ends.insert(draw_inside());
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      add(begin, end);
      begin = end;
    }
  } else if (fate == Fate::kLoseInside) {
    add(0, draw_inside());
  } else if (fate != Fate::kLose) {
    add(0, size);
    if (fate == Fate::kDuplicate) add(0, size);
  }
  if (fate == Fate::kLose || fate == Fate::kLoseInside || fate == Fate::kLoseAfter) {
    out.push_back({.kind = Delivery::Kind::kLost, .frame = nullptr});
    MutexLock lock(mutex_);
    sending_is_lost_ = true;
  }
  return out;
}

void Connection::Arrive(std::vector<Delivery> deliveries) {
  const TimePoint sent = shared_->wire->scheduler()->Now();
  const Duration delay = shared_->wire->DrawDelay();
  TimePoint due;
  {
    MutexLock lock(mutex_);
    if (close_requested_) return;
    due = std::max(last_due_, sent + delay);
    last_due_ = due;
    for (Delivery& delivery : deliveries) {
      delivery.due = due;
      inbox_bytes_ += delivery.size();
      inbox_.push_back(std::move(delivery));
    }
  }
  // One piece of work for each, so that other work may come in between.
  for (std::size_t i = 0; i < deliveries.size(); ++i) PostDelivery(due);
}

void Connection::PostDelivery(TimePoint due) {
  const auto deliver = [weak = weak_from_this()] {
    if (const std::shared_ptr<Connection> self = weak.lock()) self->DeliverFromStrand();
  };
  Scheduler* const scheduler = shared_->wire->scheduler();
  if (due <= scheduler->Now()) {
    strand_.Post(deliver);
    return;
  }
  scheduler->PostAt(due, [weak = weak_from_this(), deliver] {
    if (const std::shared_ptr<Connection> self = weak.lock()) self->strand_.Post(deliver);
  });
}

std::size_t Connection::QueuedBytes() const {
  const std::shared_ptr<Connection> peer = peer_.lock();
  if (peer == nullptr) return 0;
  MutexLock lock(peer->mutex_);
  return peer->inbox_bytes_;
}

void Connection::Close(absl::Status reason) {
  {
    MutexLock lock(mutex_);
    if (close_requested_) return;
    close_requested_ = true;
  }
  if (const std::shared_ptr<Connection> peer = peer_.lock(); peer != nullptr && !reason.ok()) {
    peer->DropInbox();
  }
  const bool counted = shared_->callbacks.EnterUntilEmpty();
  strand_.Post([self = shared_from_this(), reason = std::move(reason), counted] {
    self->FinishFromStrand(reason, Delivery::Kind::kEnd);
    if (counted) self->shared_->callbacks.Leave();
  });
}

void Connection::Lose() {
  for (const std::shared_ptr<Connection>& end : {shared_from_this(), peer_.lock()}) {
    if (end == nullptr) continue;
    end->DropInbox();
    end->Close(end->LostStatus());
  }
}

void Connection::DropInbox() {
  std::deque<Delivery> dropped;
  MutexLock lock(mutex_);
  dropped.swap(inbox_);
  inbox_bytes_ = 0;
}

void Connection::StartFromStrand(std::shared_ptr<FrameHandler> handler) {
  handler_ = std::move(handler);
  if (finished_) {
    std::exchange(handler_, nullptr)->OnClosed(reason_);
    shared_->callbacks.Leave();
    return;
  }
  self_ = shared_from_this();
  std::size_t waiting;
  {
    MutexLock lock(mutex_);
    waiting = inbox_.size();
  }
  for (std::size_t i = 0; i < waiting; ++i) PostDelivery(TimePoint::min());
}

void Connection::DeliverFromStrand() {
  if (handler_ == nullptr) return;  // not started, or finished
  const std::optional<Delivery> delivery = TakeDueFromStrand();
  if (!delivery) return;
  if (delivery->kind != Delivery::Kind::kBytes) {
    EndFromStrand(delivery->kind);
  } else if (absl::Status status = DecodeFromStrand(*delivery); !status.ok()) {
    Close(std::move(status));
  }
}

std::optional<Connection::Delivery> Connection::TakeDueFromStrand() {
  const TimePoint now = shared_->wire->scheduler()->Now();
  MutexLock lock(mutex_);
  if (close_requested_ || inbox_.empty() || inbox_.front().due > now) return std::nullopt;
  Delivery delivery = std::move(inbox_.front());
  inbox_.pop_front();
  inbox_bytes_ -= delivery.size();
  return delivery;
}

absl::Status Connection::DecodeFromStrand(const Delivery& delivery) {
  std::size_t part_begin = 0;
  for (const std::span<const std::byte> part : delivery.frame->Parts()) {
    const std::size_t part_end = part_begin + part.size();
    const std::size_t begin = std::clamp(delivery.begin, part_begin, part_end);
    const std::size_t end = std::clamp(delivery.end, part_begin, part_end);
    WEIR_RETURN_IF_ERROR(ReceiveFromStrand(part.subspan(begin - part_begin, end - begin)));
    part_begin = part_end;
  }
  return absl::OkStatus();
}

absl::Status Connection::ReceiveFromStrand(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    std::size_t copied = 0;
    for (const std::span<std::byte> space : decoder_->Space()) {
      const std::size_t count = std::min(space.size(), bytes.size());
      if (count > 0) std::memcpy(space.data(), bytes.data(), count);
      bytes = bytes.subspan(count);
      copied += count;
    }
    decoder_->Filled(copied);
    bool delivered = true;
    while (delivered) {
      if (IsCloseRequested()) return absl::OkStatus();
      WEIR_ASSIGN_OR_RETURN(delivered, decoder_->DeliverNext(*handler_));
    }
  }
  return absl::OkStatus();
}

void Connection::EndFromStrand(Delivery::Kind kind) {
  if (kind == Delivery::Kind::kLost) {
    FinishFromStrand(LostStatus(), kind);
  } else if (decoder_->AtBoundary()) {
    FinishFromStrand(absl::OkStatus(), kind);
  } else {
    FinishFromStrand(absl::UnavailableError(absl::StrCat(
                         peer_address_, " closed the connection in the middle of a frame")),
                     kind);
  }
}

/// `news` is what the peer hears of it.
void Connection::FinishFromStrand(const absl::Status& reason, Delivery::Kind news) {
  if (finished_) return;
  finished_ = true;
  reason_ = reason;
  {
    MutexLock lock(mutex_);
    close_requested_ = true;
  }
  DropInbox();
  decoder_.reset();
  shared_->registry.Remove(this);
  if (const std::shared_ptr<Connection> peer = peer_.lock()) {
    peer->Arrive({{.kind = news, .frame = nullptr}});
  }
  const std::shared_ptr<Connection> self = std::move(self_);
  if (handler_ == nullptr) return;
  std::exchange(handler_, nullptr)->OnClosed(reason);
  shared_->callbacks.Leave();
}

absl::Status Connection::LostStatus() const {
  return absl::UnavailableError(absl::StrCat("the connection to ", peer_address_, " was lost"));
}

bool Connection::IsCloseRequested() const {
  MutexLock lock(mutex_);
  return close_requested_;
}

}  // namespace weir::transport::inproc
