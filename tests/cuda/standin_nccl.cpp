// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// NCCL over MPI: communicators and the order of what is issued on them.

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tests/cuda/nccl_work.hpp"

namespace isoscale::standin {
namespace {

/// Calls of a group that is open.
struct Group {
  int depth = 0;
  std::vector<Call> calls;
};
Group& group() {
  static Group one;
  return one;
}

/// One kernel per communicator of a group, in an order that all ranks agree on.
ncclResult_t start(std::vector<Call> calls) {
  std::vector<std::shared_ptr<Ring>> rings;
  for (const Call& call : calls) {
    if (std::ranges::find(rings, call.ring) == rings.end()) rings.push_back(call.ring);
  }
  std::ranges::sort(rings, {}, [](const auto& ring) { return ring->number; });
  for (const std::shared_ptr<Ring>& ring : rings) {
    std::vector<Call> mine;
    std::ranges::copy_if(calls, std::back_inserter(mine),
                         [&](const Call& call) { return call.ring == ring; });
    const cudaStream_t stream = mine.front().stream;
    if (std::ranges::any_of(mine, [&](const Call& call) { return call.stream != stream; })) {
      return ncclInvalidUsage;
    }
    submit(stream, kernel_of(ring, std::move(mine)));
  }
  return ncclSuccess;
}

bool reaches(const void* data, std::uint64_t bytes) {
  return bytes == 0 || machine().memory.holds(data, bytes);
}

/// Refuses what NCCL would read or write outside of GPU memory, or in place where it cannot.
bool is_valid(const Call& call) {
  const std::uint64_t part = call.bytes(),
                      whole = part * static_cast<std::uint64_t>(call.ring->size);
  const auto* const send = static_cast<const std::byte*>(call.send);
  const auto* const receive = static_cast<const std::byte*>(call.receive);
  const auto apart = [](const std::byte* a, std::uint64_t a_bytes, const std::byte* b,
                        std::uint64_t b_bytes) { return a + a_bytes <= b || b + b_bytes <= a; };
  const auto own = part * static_cast<std::uint64_t>(call.ring->rank);
  const bool is_root = call.peer == call.ring->rank;
  switch (call.kind) {
    case CallKind::send:
      return reaches(send, part);
    case CallKind::receive:
      return reaches(receive, part);
    case CallKind::all_reduce:
      return reaches(send, part) && reaches(receive, part) &&
             (send == receive || apart(send, part, receive, part));
    case CallKind::reduce:
      return reaches(send, part) && (!is_root || reaches(receive, part));
    case CallKind::broadcast:
      return reaches(receive, part) && (!is_root || reaches(send, part));
    case CallKind::all_gather:
      return reaches(send, part) && reaches(receive, whole) &&
             (send == receive + own || apart(send, part, receive, whole));
    case CallKind::reduce_scatter:
      return reaches(send, whole) && reaches(receive, part) &&
             (receive == send + own || apart(send, whole, receive, part));
  }
  return false;
}

bool is_collective(const Call& call) {
  return call.kind != CallKind::send && call.kind != CallKind::receive;
}

/// NCCL looks whether the choice was the user's.
ncclResult_t refusal_of(const Ring& ring, program::DType type) {
  const Settings& settings = machine().settings;
  if (settings.refused_type.value_or(type) != type) return ncclSuccess;
  const std::string& refused = settings.refused_algorithm;
  if (refused.empty() || ring.algorithm.find(refused) == std::string::npos) return ncclSuccess;
  return std::getenv("NCCL_ALGO") != nullptr ? ncclInvalidUsage : ncclInternalError;
}

/// Counts calls on memory that the communicator was told of.
void note_memory(const Call& call) {
  const auto within = [&](const std::map<void*, Range>& ranges) {
    return std::ranges::any_of(ranges, [&](const auto& one) {
      const auto holds = [&](const void* data) {
        return data == nullptr || one.second.holds(data, 1);
      };
      return holds(call.send) && holds(call.receive);
    });
  };
  machine().symmetric_calls += within(call.ring->windows) ? 1 : 0;
  machine().registered_calls += within(call.ring->buffers) ? 1 : 0;
}

ncclResult_t issue(ncclComm_t communicator, Call call, ncclDataType_t type, cudaStream_t stream) {
  if (communicator == nullptr || communicator->ring->endless) return ncclInvalidArgument;
  const std::optional<program::DType> known = type_of(type);
  if (!known) return ncclInvalidArgument;
  const Settings& settings = machine().settings;
  const bool reduces = call.kind == CallKind::all_reduce || call.kind == CallKind::reduce ||
                       call.kind == CallKind::reduce_scatter;
  if ((type == ncclFloat8e4m3 || type == ncclFloat8e5m2) && settings.capability < 9 &&
      (reduces || settings.nccl < NCCL_VERSION(2, 28, 0))) {
    return ncclInvalidArgument;
  }
  call.ring = communicator->ring;
  call.type = *known;
  call.stream = stream;
  if (call.peer < 0 || call.peer >= call.ring->size || !is_valid(call)) return ncclInvalidArgument;
  if (is_collective(call)) {
    const Ring& ring = *call.ring;
    if (const ncclResult_t refusal = refusal_of(ring, call.type); refusal != ncclSuccess)
      return refusal;
    machine().all_reduces += call.kind == CallKind::all_reduce ? 1 : 0;
    machine().choices.insert(ring.algorithm + "|" + ring.protocol);
  }
  if (call.bytes() > machine().settings.most_connected) return ncclUnhandledCudaError;
  note_memory(call);
  if (group().depth > 0) {
    group().calls.push_back(std::move(call));
    return ncclSuccess;
  }
  return start({std::move(call)});
}

ncclResult_t publish(ncclComm_t* to, std::shared_ptr<Ring> ring, const ncclConfig_t* config) {
  if (config != nullptr && config->commName != nullptr) ring->name = config->commName;
  const Settings& settings = machine().settings;
  ring->failing = ring->name == settings.failing_communicator && !ring->name.empty();
  ring->endless = ring->name == settings.endless_communicator && !ring->name.empty();
  ring->looks_until_ready = 2;
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string{value == nullptr ? "" : value};
  };
  ring->algorithm = variable("NCCL_ALGO");
  ring->protocol = variable("NCCL_PROTO");
  const bool blocking = config == nullptr || config->blocking != 0;
  *to = std::make_unique<ncclComm>(ncclComm{std::move(ring)}).release();
  ++machine().alive.communicators;
  ++machine().communicators_made;
  return blocking && !(*to)->ring->endless ? ncclSuccess : ncclInProgress;
}

}  // namespace
}  // namespace isoscale::standin

using namespace isoscale::standin;

ncclResult_t ncclGetVersion(int* version) {
  *version = machine().settings.nccl;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 0x2A, sizeof *id);
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error"
                                   : "invalid argument or usage";
}
const char* ncclGetLastError(ncclComm_t /*communicator*/) { return "said by the stand-in"; }

ncclResult_t ncclCommInitRankConfig(ncclComm_t* to, int ranks, ncclUniqueId /*id*/, int rank,
                                    ncclConfig_t* config) {
  auto ring = std::make_shared<Ring>();
  ring->rank = rank;
  ring->size = ranks;
  MPI_Comm_dup(machine().settings.nccl_world, &ring->mpi);
  return publish(to, std::move(ring), config);
}

ncclResult_t ncclCommSplit(ncclComm_t parent, int colour, int key, ncclComm_t* to,
                           ncclConfig_t* config) {
  Ring& from = *parent->ring;
  if (from.looks_until_ready > 0) return ncclInvalidUsage;  // it is not ready yet
  auto ring = std::make_shared<Ring>();
  MPI_Comm_split(from.mpi, colour, key, &ring->mpi);
  MPI_Comm_rank(ring->mpi, &ring->rank);
  MPI_Comm_size(ring->mpi, &ring->size);
  // Alike on all ranks, and in no order that the program could know.
  ring->number = (from.number + static_cast<std::uint64_t>(++from.children)) * 0x9E3779B97F4A7C15U;
  return publish(to, std::move(ring), config);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* state) {
  Ring& ring = *communicator->ring;
  *state = ncclSuccess;
  if (ring.endless || ring.looks_until_ready > 0) {
    --ring.looks_until_ready;
    *state = ncclInProgress;
  } else if (ring.is_stuck(ring.finished)) {
    const Settings& settings = machine().settings;
    if (settings.when_asked_why) settings.when_asked_why();
    *state = settings.failing_result;
  }
  return ncclSuccess;
}
ncclResult_t ncclCommCount(ncclComm_t communicator, int* count) {
  *count = communicator->ring->size;
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  const auto& ring = communicator->ring;
  // NCCL would wait for ever for a graph that holds kernels of the communicator to be destroyed.
  const bool is_in_graph = ring.use_count() > 1;
  const bool knows_memory = !ring->windows.empty() || !ring->buffers.empty();
  return ring->issued == ring->finished && !is_in_graph && !knows_memory ? ncclSuccess
                                                                         : ncclInvalidUsage;
}
ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  const std::unique_ptr<ncclComm> owned{communicator};
  --machine().alive.communicators;
  MPI_Comm_free(&owned->ring->mpi);
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  const std::unique_ptr<ncclComm> owned{communicator};
  --machine().alive.communicators;
  forget_registrations(*owned->ring);
  owned->ring->aborted = true;  // its kernels end; MPI's communicator is left as it is
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group().depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (group().depth == 0) return ncclInvalidUsage;
  if (--group().depth > 0) return ncclSuccess;
  return start(std::exchange(group().calls, {}));
}

/// 10 us a call and 1 GB/s; NCCL says nothing about messages.
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* info) {
  if (group().depth != 1) return ncclInvalidUsage;
  --group().depth;
  const std::vector<Call> calls = std::exchange(group().calls, {});
  if (!std::ranges::all_of(calls, is_collective)) return ncclSuccess;
  info->estimatedTime = 0;
  for (const Call& call : calls) {
    info->estimatedTime += 10.0F + static_cast<float>(call.bytes()) * 1e-3F;
  }
  return ncclSuccess;
}

ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t to, cudaStream_t stream) {
  return issue(to, {CallKind::send, data, nullptr, count, peer}, type, stream);
}
ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t from,
                      cudaStream_t stream) {
  return issue(from, {CallKind::receive, nullptr, data, count, peer}, type, stream);
}
ncclResult_t ncclAllReduce(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t how, ncclComm_t all, cudaStream_t stream) {
  return issue(all, {CallKind::all_reduce, send, receive, count, 0, how}, type, stream);
}
ncclResult_t ncclReduceScatter(const void* send, void* receive, std::size_t count,
                               ncclDataType_t type, ncclRedOp_t how, ncclComm_t all,
                               cudaStream_t stream) {
  return issue(all, {CallKind::reduce_scatter, send, receive, count, 0, how}, type, stream);
}
ncclResult_t ncclAllGather(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           ncclComm_t all, cudaStream_t stream) {
  return issue(all, {CallKind::all_gather, send, receive, count}, type, stream);
}
ncclResult_t ncclBroadcast(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t all, cudaStream_t stream) {
  return issue(all, {CallKind::broadcast, send, receive, count, root}, type, stream);
}
ncclResult_t ncclReduce(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t how, int root, ncclComm_t all, cudaStream_t stream) {
  return issue(all, {CallKind::reduce, send, receive, count, root, how}, type, stream);
}
