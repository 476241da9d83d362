// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "tests/cuda/nccl_work.hpp"

#include <algorithm>

#include "tests/executor/sketch.hpp"

namespace isoscale::standin {
namespace {

template <class Value>
Value combined(ncclRedOp_t operation, Value a, Value b) {
  return operation == ncclMin ? std::min(a, b) : operation == ncclMax ? std::max(a, b) : a + b;
}

/// into = into + from, each sum rounded to the type.
void reduce(const Call& call, const std::byte* from, std::byte* into) {
  for (std::uint64_t i = 0; i < call.count; ++i) {
    if (call.type == program::DType::i64) {  // f64 does not hold all of them
      auto& to = reinterpret_cast<std::int64_t*>(into)[i];
      to = combined(call.operation, to, reinterpret_cast<const std::int64_t*>(from)[i]);
    } else {
      executor::set_element(call.type, into, i,
                            combined(call.operation, executor::element(call.type, into, i),
                                     executor::element(call.type, from, i)));
    }
  }
}

/// The parts of all ranks, `stride` bytes apart, reduced.
void reduce_all(const Call& call, const std::byte* parts, std::uint64_t stride) {
  std::vector<std::byte> sum(parts, parts + call.bytes());
  for (int rank = 1; rank < call.ring->size; ++rank) {
    reduce(call, parts + static_cast<std::uint64_t>(rank) * stride, sum.data());
  }
  std::memcpy(call.receive, sum.data(), sum.size());
}

int count_of(std::uint64_t bytes) { return static_cast<int>(bytes); }

class Kernel final : public Work {
 public:
  Kernel(std::shared_ptr<Ring> ring, std::vector<Call> calls)
      : ring_(std::move(ring)), calls_(std::move(calls)) {}

  /// Messages match in the order in which they are issued.
  void issued() override {
    constexpr int tags = 1 << 14;
    turn_ = ring_->issued++;
    for (const Call& call : calls_) {
      const bool receives = call.kind == CallKind::receive;
      const bool is_message = receives || call.kind == CallKind::send;
      int& count = (receives ? ring_->received : ring_->sent)[call.peer];
      tags_.push_back(is_message ? count++ % tags : 0);
    }
  }
  bool run() override {
    if (ring_->aborted) return true;
    if (ring_->is_stuck(turn_) || ring_->finished != turn_) return false;
    if (requests_.empty()) begin();
    int done = 0;
    MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE);
    if (done == 0) return false;
    for (std::size_t i = 0; i < calls_.size(); ++i) end(calls_[i], gathered_[i]);
    ++ring_->finished;
    return true;
  }
  [[nodiscard]] WorkPointer again() const override { return kernel_of(ring_, calls_); }

 private:
  void begin() {
    requests_.assign(calls_.size(), MPI_REQUEST_NULL);
    gathered_.resize(calls_.size());
    for (std::size_t i = 0; i < calls_.size(); ++i) begin(calls_[i], i);
  }

  void begin(const Call& call, std::size_t index) {
    const int bytes = count_of(call.bytes());
    MPI_Request* const request = &requests_[index];
    if (call.kind == CallKind::send) {
      // Waits for its receiver, as NCCL does with messages of any length.
      MPI_Issend(call.send, bytes, MPI_BYTE, call.peer, tags_[index], ring_->mpi, request);
    } else if (call.kind == CallKind::receive) {
      MPI_Irecv(call.receive, bytes, MPI_BYTE, call.peer, tags_[index], ring_->mpi, request);
    } else {
      // A rank that receives a broadcast has nothing to give: nobody takes what it gives here.
      const bool gives = call.kind != CallKind::broadcast || ring_->rank == call.peer;
      const auto size = static_cast<std::uint64_t>(ring_->size);
      const std::uint64_t given = call.bytes() * (call.kind == CallKind::reduce_scatter ? size : 1);
      gathered_[index].resize(size * given);
      MPI_Iallgather(gives ? call.send : call.receive, count_of(given), MPI_BYTE,
                     gathered_[index].data(), count_of(given), MPI_BYTE, ring_->mpi, request);
    }
  }

  void end(const Call& call, const std::vector<std::byte>& gathered) const {
    const auto part_of = [&](int rank) {
      return gathered.data() + static_cast<std::uint64_t>(rank) * call.bytes();
    };
    switch (call.kind) {
      case CallKind::all_reduce:
        return reduce_all(call, gathered.data(), call.bytes());
      case CallKind::reduce:
        if (ring_->rank == call.peer) reduce_all(call, gathered.data(), call.bytes());
        return;
      case CallKind::reduce_scatter:
        return reduce_all(call, part_of(ring_->rank),
                          static_cast<std::uint64_t>(ring_->size) * call.bytes());
      case CallKind::all_gather:
        std::memcpy(call.receive, gathered.data(), gathered.size());
        return;
      case CallKind::broadcast:
        std::memcpy(call.receive, part_of(call.peer), call.bytes());
        return;
      case CallKind::send:
      case CallKind::receive:
        return;
    }
  }

  std::shared_ptr<Ring> ring_;
  std::vector<Call> calls_;
  std::vector<int> tags_;                         ///< of messages
  std::vector<std::vector<std::byte>> gathered_;  ///< what all ranks sent, of each call
  std::vector<MPI_Request> requests_;             ///< empty before it begins
  std::uint64_t turn_ = 0;
};

}  // namespace

WorkPointer kernel_of(std::shared_ptr<Ring> ring, std::vector<Call> calls) {
  return std::make_shared<Kernel>(std::move(ring), std::move(calls));
}

std::optional<program::DType> type_of(ncclDataType_t type) {
  using program::DType;
  static const std::map<ncclDataType_t, DType> types{
      {ncclFloat64, DType::f64},   {ncclFloat32, DType::f32},     {ncclFloat16, DType::f16},
      {ncclBfloat16, DType::bf16}, {ncclFloat8e4m3, DType::e4m3}, {ncclFloat8e5m2, DType::e5m2},
      {ncclInt64, DType::i64},     {ncclInt32, DType::i32},       {ncclInt8, DType::i8},
      {ncclUint8, DType::u8}};
  const auto found = types.find(type);
  return found == types.end() ? std::nullopt : std::optional{found->second};
}

}  // namespace isoscale::standin
