// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/symmetric.hpp"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "executor/cuda/check.hpp"
#include "executor/cuda/nccl_versions.hpp"

namespace isoscale::executor::cuda {
namespace {

using program::Collective;
using program::CollectiveKind;

/// visit(op, collective) for those of a program that are to use symmetric kernels.
template <class Visit>
void for_each_symmetric(const program::RankProgram& program, const Visit& visit) {
  for (const program::Program* section : program.sections()) {
    for (const program::Op& op : section->ops) {
      const auto* const collective = std::get_if<Collective>(&op.payload);
      if (collective == nullptr || collective->transport != program::Transport::symmetric) continue;
      visit(op, *collective);
    }
  }
}

/// The kernels that NCCL 2.28 has, as the names of its kernels say: all_gather of any type, and
/// sums in all_reduce and reduce_scatter of types of at most 32 bits.
void require_kernel(const Collective& collective, program::DType type) {
  const bool moves = collective.kind == CollectiveKind::all_gather;
  const bool sums = (collective.kind == CollectiveKind::all_reduce ||
                     collective.kind == CollectiveKind::reduce_scatter) &&
                    collective.reduction == program::Reduction::sum;
  const bool is_narrow = type == program::DType::f32 || type == program::DType::f16 ||
                         type == program::DType::bf16 || type == program::DType::e4m3 ||
                         type == program::DType::e5m2;
  if (moves || (sums && is_narrow)) return;
  throw Unsupported(fmt::format("transport=symmetric: NCCL has no symmetric kernel for {} of {}",
                                program::name(program::kind_of(program::Payload{collective})),
                                program::name(type)));
}

/// What a symmetric kernel reaches on its peers: addresses that must be alike on all ranks.
std::vector<std::uint64_t> reached(const program::RankProgram& program, mesh::AxisSet axes) {
  std::vector<std::uint64_t> addresses;
  for_each_symmetric(program, [&](const program::Op& /*op*/, const Collective& collective) {
    if (collective.axes != axes) return;
    const auto add = [&](const program::Slice& slice) {
      const program::Buffer& buffer = program.buffers[slice.buffer];
      addresses.push_back(buffer.offset + slice.offset * program::element_size(buffer.dtype));
      addresses.push_back(slice.step);
    };
    if (collective.kind != CollectiveKind::all_gather) add(collective.send);
    if (collective.kind != CollectiveKind::reduce_scatter) add(collective.receive);
  });
  return addresses;
}

/// Every rank of a group has what the first of it has, where the peers look for it.
void require_alike(const program::ProgramSet& set, mesh::AxisSet axes) {
  std::map<int, std::uint32_t> first;                      // program, by group
  std::set<std::pair<std::uint32_t, std::uint32_t>> meet;  // different programs in one group
  for (int rank = 0; rank < set.mesh.size(); ++rank) {
    const std::uint32_t program = set.program_of_rank[static_cast<std::size_t>(rank)];
    const auto [known, is_new] =
        first.try_emplace(mesh::group_colour(set.mesh, rank, axes), program);
    if (!is_new && known->second != program) meet.emplace(known->second, program);
  }
  for (const auto& [one, other] : meet) {
    if (reached(set.programs[one], axes) == reached(set.programs[other], axes)) continue;
    throw Unsupported(fmt::format(
        "transport=symmetric: ranks along {} play programs whose buffers lie at different places "
        "of their windows; use transport=nccl",
        mesh::to_string(axes)));
  }
}

}  // namespace

std::string symmetric_problem(int nccl, const ChosenGpu& chosen) {
  if (!has_puts()) {
    return fmt::format(
        "transport=symmetric needs NCCL 2.28 or newer, built with and run with: this is {}.{}",
        nccl / 10000, nccl % 10000 / 100);
  }
  if (chosen.is_shared)
    return "transport=symmetric needs a GPU for every rank, and ranks share one";
  return {};
}

void require_windows(const program::ProgramSet& set, const Communicators& communicators) {
  bool all = true;
  // To the end: ranks of other communicators ask together with this one.
  for (const ncclComm_t communicator : communicators.touching(set, program::Space::symmetric)) {
    bool maps = false;
    check(maps_windows(communicator, maps));
    all = all && maps;
  }
  if (!all) {
    throw Unsupported(
        "NCCL makes no symmetric windows on this machine: its GPUs do not reach each other's "
        "memory, or NCCL_WIN_ENABLE or NCCL_CUMEM_ENABLE is 0");
  }
}

void require_symmetric(const program::ProgramSet& set, const Communicators& communicators) {
  std::map<std::pair<mesh::AxisSet, program::StreamId>, int> groups;
  for (const program::RankProgram& program : set.programs) {
    for_each_symmetric(program, [&](const program::Op& op, const Collective& collective) {
      const program::Slice& slice =
          collective.send.buffer != program::no_buffer ? collective.send : collective.receive;
      if (slice.buffer == program::no_buffer) return;
      require_kernel(collective, program.buffers[slice.buffer].dtype);
      groups[{collective.axes, op.stream}] = mesh::group_size(set.mesh, collective.axes);
    });
  }
  for (const auto& [group, size] : groups) {
    const auto& [axes, stream] = group;
    require_alike(set, axes);
    if (mapped_ranks(communicators.collective(axes, stream), 0).count == size) continue;
    throw Unsupported(fmt::format(
        "transport=symmetric: not all GPUs along {} reach each other's memory: NCCL's symmetric "
        "kernels need NVLink or peer access; use transport=nccl, or put that axis within a node",
        mesh::to_string(axes)));
  }
}

}  // namespace isoscale::executor::cuda
