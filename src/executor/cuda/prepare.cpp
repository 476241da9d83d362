// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/prepare.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <type_traits>
#include <utility>

#include "executor/op_arguments.hpp"

namespace isoscale::executor::cuda {
namespace {

/// Returns new device memory with a copy of the words.
DeviceMemory upload(const std::vector<std::uint32_t>& words) {
  const std::size_t bytes = words.size() * sizeof(std::uint32_t);
  DeviceMemory memory = allocate_device(units::Bytes{bytes});
  if (bytes > 0) check(cudaMemcpy(memory.get(), words.data(), bytes, cudaMemcpyDefault));
  // A copy from pageable memory may return before it is done, and streams do not wait for it.
  check(cudaDeviceSynchronize());
  return memory;
}

/// Starts one 2-D copy per matrix if a matrix has several rows and they do not overlap, else one
/// cudaMemcpyAsync per row. Source and destination may be in memory of any kind.
void copy(const StridedCopy& call, cudaStream_t stream) {
  if (call.row_bytes == 0) return;
  const bool by_matrix =
      call.rows > 1 && call.src_row >= call.row_bytes && call.dst_row >= call.row_bytes;
  for (std::size_t b = 0; b < call.batch; ++b) {
    const std::byte* const src = call.src + b * call.src_batch;
    std::byte* const dst = call.dst + b * call.dst_batch;
    if (by_matrix) {
      check(cudaMemcpy2DAsync(dst, call.dst_row, src, call.src_row, call.row_bytes, call.rows,
                              cudaMemcpyDefault, stream));
      continue;
    }
    for (std::size_t row = 0; row < call.rows; ++row) {
      check(cudaMemcpyAsync(dst + row * call.dst_row, src + row * call.src_row, call.row_bytes,
                            cudaMemcpyDefault, stream));
    }
  }
}

using program::Advice;

/// Advice about `bytes` of managed memory. A prefetch runs on the stream; other advice takes effect
/// before give() returns.
struct AdviseCall {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  Advice advice = Advice::prefetch_device;
  int device = 0;
};

// CUDA 13 names a memory's location by cudaMemLocation; earlier versions use a device number.
#if CUDART_VERSION >= 13000
using Place = cudaMemLocation;
Place on_gpu(int device) { return {.type = cudaMemLocationTypeDevice, .id = device}; }
Place on_host() { return {.type = cudaMemLocationTypeHost, .id = 0}; }
cudaError_t prefetch(const AdviseCall& call, Place place, cudaStream_t stream) {
  return cudaMemPrefetchAsync(call.memory, call.bytes, place, 0, stream);
}
#else
using Place = int;
Place on_gpu(int device) { return device; }
Place on_host() { return cudaCpuDeviceId; }
cudaError_t prefetch(const AdviseCall& call, Place place, cudaStream_t stream) {
  return cudaMemPrefetchAsync(call.memory, call.bytes, place, stream);
}
#endif

void give(const AdviseCall& call, cudaStream_t stream) {
  if (call.bytes == 0) return;
  const bool is_host = call.advice == Advice::prefetch_host || call.advice == Advice::prefer_host;
  const Place place = is_host ? on_host() : on_gpu(call.device);
  const auto advise = [&](cudaMemoryAdvise advice) {
    check(cudaMemAdvise(call.memory, call.bytes, advice, place));
  };
  switch (call.advice) {
    case Advice::prefetch_device:
    case Advice::prefetch_host:
      return check(prefetch(call, place, stream));
    case Advice::read_mostly:
      return advise(cudaMemAdviseSetReadMostly);
    case Advice::unset_read_mostly:
      return advise(cudaMemAdviseUnsetReadMostly);
    case Advice::prefer_device:
    case Advice::prefer_host:
      return advise(cudaMemAdviseSetPreferredLocation);
    case Advice::unset_preferred:
      return advise(cudaMemAdviseUnsetPreferredLocation);
  }
}

/// Looks up the operands of an op. Throws base::Error if one lies in host memory, with two
/// exceptions: a fill's destination may lie anywhere, and a checksum's source in pinned memory.
template <class Op>
Arguments<Op> arguments(const Resolver& resolver, const Op& op) {
  return arguments_of(resolver, op, [&](const TypedOperand& operand, const program::Slice& slice) {
    // A fill may have any destination: if it is host memory, the kernel fills staging memory.
    if (std::is_same_v<Op, program::Fill>) return;
    if constexpr (std::is_same_v<Op, program::Checksum>) {
      // A checksum may read pinned memory, although kernels reach it slowly, since checksums are
      // not timed.
      const bool is_source = operand.elements == program::Elements::common;
      if (is_source && resolver.space(slice) == program::Space::pinned) return;
    }
    require_on_device(resolver, slice, operand.name);
  });
}

/// Throws base::Error, which names the types, if there is no kernel for the op.
template <class Op>
void require_kernel(const Arguments<Op>& call) {
  if (has_kernel(call)) return;
  if constexpr (requires { call.op.keep; }) {
    if (call.op.block > most_per_list_block) {
      throw base::Error(
          fmt::format("lists over blocks of {} elements: the CUDA executor has them up to {}",
                      call.op.block, most_per_list_block));
    }
  }
  std::set<std::string_view> types;
  for (const OperandAt& at : call.operands) {
    if (at.data != nullptr) types.insert(program::name(at.type));
  }
  throw base::Error(fmt::format("the CUDA executor has no {} of {}",
                                program::name(program::kind_of(call.op)), fmt::join(types, ", ")));
}

/// Prepares the ops of a program, section by section. The functions that prepare one op throw
/// base::Error if the device cannot run it.
class Preparer {
 public:
  Preparer(const Resolver& resolver, const Communicators& communicators, const Puts& puts,
           const GemmChoices& choices, const Scratch& scratch)
      : resolver_(resolver),
        communicators_(communicators),
        puts_(puts),
        choices_(choices),
        scratch_(scratch) {}

  PreparedSection section(const program::Program& section) {
    advanced_.clear();
    PreparedSection result;
    std::uint32_t events = 0;  // number of ops so far that others wait for
    std::set<program::StreamId> used;
    std::array<std::vector<std::uint32_t>, program::max_streams> of_stream;  // op indices
    for (std::uint32_t i = 0; i < section.ops.size(); ++i) {
      const program::Op& op = section.ops[i];
      used.insert(op.stream);
      of_stream[op.stream].push_back(i);
      PreparedOp prepared{.call = naming(op, i, [&] { return call(op); }),
                          .stream = op.stream,
                          .done = op.awaited ? events++ : no_event,
                          .wait_begin = static_cast<std::uint32_t>(result.waits.size()),
                          .wait_count = op.wait_count};
      for (const program::Wait& wait : section.waits_of(op)) {
        result.waits.push_back(result.ops[of_stream[wait.stream].at(wait.count - 1)].done);
      }
      if (std::holds_alternative<program::Advise>(op.payload) || touches_pageable(op)) {
        result.can_be_captured = false;
      }
      result.ops.push_back(std::move(prepared));
    }
    result.streams.assign(used.begin(), used.end());
    return result;
  }

  std::map<std::string, GemmPlan> take_plans() { return std::move(plans_); }
  [[nodiscard]] std::vector<GemmChoice> choices_in_use() const {
    std::vector<GemmChoice> choices;
    for (const auto& [shape, choice] : in_use_) {
      choices.push_back(*choice);
      choices.back().arithmetic = arithmetic_of(algorithm_of(choice->algorithm));
    }
    return choices;
  }

 private:
  /// True if the op uses pageable memory. A graph cannot capture such an op, since CUDA may copy a
  /// part of the memory while the copy is issued.
  [[nodiscard]] bool touches_pageable(const program::Op& op) const {
    bool found = false;
    program::for_each_slice(op.payload, [&](const program::Slice& slice, program::Mode) {
      found = found || resolver_.space(slice) == program::Space::pageable;
    });
    return found;
  }

  Call call(const program::Op& op) {
    return std::visit([&](const auto& payload) -> Call { return call(payload, op.stream); },
                      op.payload);
  }
  Call call(const program::Gemm& gemm, program::StreamId stream) {
    const GemmProblem problem = gemm_problem(resolver_, gemm);
    const GemmChoice& choice = choices_.of(problem);
    in_use_.emplace(choice.shape, &choice);
    const cublasLtMatmulAlgo_t algorithm = algorithm_of(choice.algorithm);
    const auto [place, is_new] = plans_.try_emplace(choice.shape, problem);
    const GemmPlan& plan = place->second;
    if (is_new) require_algorithm(choices_.handle(), plan, choice);
    return GemmCall{.library = choices_.handle(),
                    .plan = &plan,
                    .algorithm = algorithm,
                    .problem = problem,
                    .workspace = scratch_.workspaces[stream].get(),
                    .workspace_bytes = scratch_.workspace_bytes[stream].value()};
  }
  Call call(const program::Collective& op, program::StreamId stream) const {
    CollectiveCall call{.kind = op.kind,
                        .data = resolve(resolver_, op),
                        .communicator = communicators_.collective(op.axes, stream),
                        .operation = nccl_operation(op.reduction),
                        .root = op.root};
    if (op.kind == program::CollectiveKind::barrier) {
      call.data.send = call.data.receive = static_cast<std::byte*>(scratch_.barrier.get());
      call.data.count = 1;
      return call;
    }
    for (const program::Slice* slice : {&op.send, &op.receive}) {
      if (slice->buffer != program::no_buffer) {
        require_on_device(resolver_, *slice, "communicated data");
      }
    }
    call.type = nccl_type(call.data.type, reduces(op.kind) ? Use::reduced : Use::moved);
    require_possible(call);
    if (is_made_of_messages(op.kind)) return messages_of(call, op);
    return call;
  }
  /// The messages are ordered by link for two reasons. First, a group starts one kernel per
  /// communicator, in NCCL's own order or in the order of the calls; this order must be the same on
  /// all ranks, or ranks could wait for each other in a cycle. Second, NCCL matches messages
  /// between two ranks on one communicator by their order.
  Call call(const program::Exchange& op, program::StreamId /*stream*/) const {
    if (op.transport == program::Transport::symmetric) return puts_.of(op);
    const mesh::Shape& mesh = resolver_.mesh();
    const int rank = resolver_.rank();
    ExchangeCall call;
    for (const program::Transfer& transfer : transfers_by_link(mesh, rank, op)) {
      const LinkKind kind = link_kind(mesh, rank, transfer.axis, transfer.offset);
      const int peer = mesh::neighbour(mesh, rank, transfer.axis, transfer.offset);
      require_on_device(resolver_, transfer.slice, "communicated data");
      call.messages.push_back({.direction = transfer.direction,
                               .data = resolver_.address(transfer.slice),
                               .count = transfer.slice.count,
                               .type = nccl_type(resolver_.dtype(transfer.slice), Use::moved),
                               .peer = mesh::group_index(mesh, peer, transfer.axis),
                               .communicator = communicators_.link(kind)});
    }
    return call;
  }
  /// A copy of several rows or matrices is done by one kernel if both sides are on the device:
  /// cudaMemcpy would need a call for each matrix, or even for each row.
  Call call(const program::Copy& op, program::StreamId /*stream*/) const {
    const StridedCopy pieces = strided_copy(resolver_, op);
    const bool is_kernel = pieces.rows * pieces.batch > 1 &&
                           is_on_device(resolver_, op.src.slice) &&
                           is_on_device(resolver_, op.dst.slice);
    if (is_kernel) return Launch{[pieces](cudaStream_t on) { check(start(pieces, on)); }};
    return Launch{[pieces](cudaStream_t on) { copy(pieces, on); }};
  }
  Call call(const program::Cast& op, program::StreamId /*stream*/) {
    Arguments<program::Cast> call = arguments(resolver_, op);
    if (op.scaling == program::CastScale::amax) {
      call.largest = static_cast<unsigned*>(scratch_.largest.get()) + measured_++;
    }
    return kernel(call);
  }
  /// For a fill of host memory, the kernel fills staging memory on the GPU, which is then copied,
  /// so that elements are the same as in a fill of GPU memory.
  Call call(const program::Fill& op, program::StreamId stream) const {
    Arguments<program::Fill> call = arguments(resolver_, op);
    const std::size_t bytes = host_fill_bytes(resolver_, op);
    if (bytes == 0) return kernel(call);
    std::byte* const staging = static_cast<std::byte*>(scratch_.workspaces[stream].get());
    std::byte* const dst = std::exchange(call.at(&program::Fill::dst).data, staging);
    return Launch{[call, dst, staging, bytes](cudaStream_t on) {
      // Elements of the slice that are not in the shard must keep their values, so they are copied
      // too.
      check(cudaMemcpyAsync(staging, dst, bytes, cudaMemcpyDefault, on));
      check(start(call, on));
      check(cudaMemcpyAsync(dst, staging, bytes, cudaMemcpyDefault, on));
    }};
  }
  Call call(const program::Update& op, program::StreamId /*stream*/) {
    const bool advances = op.optimizer == program::Optimizer::adam &&
                          advanced_.insert(resolver_.address(op.powers)).second;
    Arguments<program::Update> call = arguments(resolver_, op);
    if (advances) call.powers = Powers::advance;
    return kernel(call);
  }
  Call call(const program::Rows& op, program::StreamId /*stream*/) {
    Arguments<program::Rows> call = arguments(resolver_, op);
    call.from = static_cast<const std::uint32_t*>(scratch_.indices.get()) +
                std::exchange(indexed_, indexed_ + op.from.size());
    call.op.from = std::vector<std::uint32_t>{};  // not needed: kernels read a copy on the GPU
    return kernel(std::move(call));
  }
  Call call(const program::Advise& op, program::StreamId /*stream*/) const {
    const program::Space space = resolver_.space(op.slice);
    if (space != program::Space::managed) {
      throw base::Error(fmt::format("advice about {} memory: only managed memory takes it",
                                    program::name(space)));
    }
    AdviseCall call{.memory = resolver_.address(op.slice),
                    .bytes = op.slice.count * resolver_.element_size(op.slice),
                    .advice = op.advice};
    check(cudaGetDevice(&call.device));
    return Launch{[call](cudaStream_t on) { give(call, on); }};
  }
  template <class Op>  // NOLINTNEXTLINE(clang-diagnostic-undefined-internal): it is defined here
  Call call(const Op& op, program::StreamId /*stream*/) const {
    return kernel(arguments(resolver_, op));
  }

  template <class Op>
  static Launch kernel(Arguments<Op> call) {
    require_kernel(call);
    return [call = std::move(call)](cudaStream_t on) { check(start(call, on)); };
  }

  const Resolver& resolver_;
  const Communicators& communicators_;
  const Puts& puts_;
  const GemmChoices& choices_;
  const Scratch& scratch_;
  std::map<std::string, GemmPlan> plans_;  // by GemmChoice::shape
  std::map<std::string, const GemmChoice*> in_use_;
  std::set<const std::byte*> advanced_;  // addresses of Adam's powers that an Update has advanced
  std::size_t measured_ = 0;             // number of casts so far with CastScale::amax
  std::size_t indexed_ = 0;              // number of indices of the Rows ops so far
};

}  // namespace

void launch(const Call& call, cudaStream_t stream) {
  std::visit(
      [stream]<class Kind>(const Kind& one) {
        if constexpr (std::is_same_v<Kind, Launch>) {
          one(stream);
        } else if constexpr (std::is_same_v<Kind, PutCall>) {
          check(start(one, stream));
        } else {
          launch(one, stream);
        }
      },
      call);
}

PreparedProgram prepare(const Resolver& resolver, const program::RankProgram& program,
                        const Communicators& communicators, const Puts& puts,
                        const GemmChoices& choices) {
  PreparedProgram result;
  result.scratch = take_scratch(resolver, program, choices);
  Preparer preparer{resolver, communicators, puts, choices, result.scratch};
  for (const program::Program* section : program.sections()) {
    result.sections.push_back(preparer.section(*section));
  }
  result.plans = preparer.take_plans();
  result.choices = preparer.choices_in_use();
  return result;
}

Scratch take_scratch(const Resolver& resolver, const program::RankProgram& program,
                     const GemmChoices& choices) {
  std::array<std::uint64_t, program::max_streams> workspace{};
  const auto reserve = [&](const program::Op& op, std::uint64_t bytes) {
    workspace[op.stream] = std::max(workspace[op.stream], bytes);
  };
  for_each_op<program::Gemm>(program, [&](const auto& op, const auto& gemm) {
    reserve(op, static_cast<std::uint64_t>(choices.of(gemm_problem(resolver, gemm)).workspace));
  });
  for_each_op<program::Fill>(program, [&](const auto& op, const auto& fill) {
    reserve(op, host_fill_bytes(resolver, fill));
  });
  std::uint64_t measured = 0;
  for_each_op<program::Cast>(program, [&](const auto&, const auto& cast) {
    measured += cast.scaling == program::CastScale::amax ? 1 : 0;
  });
  std::vector<std::uint32_t> indices;
  for_each_op<program::Rows>(program, [&](const auto&, const auto& rows) {
    indices.insert(indices.end(), rows.from.begin(), rows.from.end());
  });
  constexpr std::uint64_t barrier_bytes = 256;
  Scratch scratch;
  for (const std::uint64_t bytes : workspace) {
    scratch.workspaces.push_back(allocate_device(units::Bytes{bytes}));
    scratch.workspace_bytes.emplace_back(bytes);
    scratch.bytes += units::Bytes{bytes};
  }
  scratch.largest = allocate_device(units::Bytes{measured * sizeof(unsigned int)});
  scratch.barrier = allocate_device(units::Bytes{barrier_bytes});
  scratch.indices = upload(indices);
  scratch.bytes += units::Bytes{indices.size() * sizeof(std::uint32_t)};
  scratch.bytes += units::Bytes{measured * sizeof(unsigned int) + barrier_bytes};
  return scratch;
}

void Scratch::abandon() noexcept {
  for (DeviceMemory& workspace : workspaces) static_cast<void>(workspace.release());
  abandon_all(largest, barrier, indices);
}

std::vector<GemmProblem> gemm_problems(const Resolver& resolver,
                                       const program::RankProgram& program) {
  std::vector<GemmProblem> problems;
  for (const program::Program* section : program.sections()) {
    for (std::uint32_t i = 0; i < section->ops.size(); ++i) {
      const program::Op& op = section->ops[i];
      const auto* const gemm = std::get_if<program::Gemm>(&op.payload);
      if (gemm == nullptr) continue;
      problems.push_back(naming(op, i, [&] { return gemm_problem(resolver, *gemm); }));
    }
  }
  return problems;
}

std::uint64_t host_fill_bytes(const Resolver& resolver, const program::Fill& op) {
  const program::Space space = resolver.space(op.dst);
  const bool is_host = space == program::Space::pinned || space == program::Space::pageable;
  return is_host ? op.dst.count * resolver.element_size(op.dst) : 0;
}

std::map<ncclComm_t, FirstCalls> first_calls(const PreparedProgram& program,
                                             const SessionOptions& options) {
  std::map<ncclComm_t, FirstCalls> result;
  std::map<std::tuple<ncclComm_t, int, program::Direction, ncclDataType_t>, Message> messages;
  for (const PreparedSection& section : program.sections) {
    for (const PreparedOp& op : section.ops) {
      if (const auto* const call = std::get_if<CollectiveCall>(&op.call)) {
        const auto form = [](const CollectiveCall& one) {
          return std::tuple{one.kind, one.type, one.operation, one.root};
        };
        std::vector<CollectiveCall>& known = result[call->communicator].collectives;
        const auto largest = std::ranges::find(known, form(*call), form);
        if (largest == known.end()) {
          known.push_back(*call);
        } else if (call->data.count > largest->data.count) {
          *largest = *call;
        }
      } else if (const auto* const exchange = std::get_if<ExchangeCall>(&op.call);
                 exchange != nullptr && !options.connects_in_play) {
        for (const Message& one : exchange->messages) {
          if (one.count == 0) continue;
          Message& largest = messages[{one.communicator, one.peer, one.direction, one.type}];
          if (one.count > largest.count) largest = one;
        }
      }
    }
  }
  for (const auto& [key, largest] : messages) {
    result[largest.communicator].exchange.messages.push_back(largest);
  }
  return result;
}

}  // namespace isoscale::executor::cuda
