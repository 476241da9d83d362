// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/staging.hpp"

#include <algorithm>
#include <string_view>
#include <variant>

#include "comm/communicator.hpp"
#include "program/access.hpp"

namespace isoscale::executor::host {
namespace {

using program::Collective;
using program::CollectiveKind;

bool overlap(const program::Slice& a, const program::Slice& b, const mesh::Shape& mesh) {
  const program::Access first = access(a, mesh, program::Mode::read);
  const program::Access second = access(b, mesh, program::Mode::read);
  return first.buffer == second.buffer && first.begin < second.end && second.begin < first.end;
}

/// Elements that one collective copies aside.
std::uint64_t staged(const Collective& op, const mesh::Shape& mesh, std::uint64_t limit) {
  if (op.send.buffer != op.receive.buffer) return 0;
  switch (op.kind) {
    case CollectiveKind::reduce_scatter:
      return overlap(op.send, op.receive, mesh) ? op.receive.count : 0;
    case CollectiveKind::reduce:
      return crashes_in_place(op.kind, op.root) ? op.send.count : 0;
    case CollectiveKind::all_to_all: {
      const bool uneven = !op.send_counts.empty() || !op.receive_counts.empty();
      return uneven || op.send.count > limit ? op.send.count : 0;
    }
    default:
      return 0;
  }
}

}  // namespace

bool crashes_in_place(CollectiveKind kind, std::int32_t root) {
  return kind == CollectiveKind::reduce && root != 0 &&
         comm::Environment::library_version().starts_with("MPICH Version: 4.0");
}

std::array<units::Bytes, program::max_streams> staging_bytes(const program::RankProgram& program,
                                                             const mesh::Shape& mesh,
                                                             std::uint64_t elements_per_call) {
  std::array<units::Bytes, program::max_streams> bytes{};
  for (const program::Program* section : program.sections()) {
    for (const program::Op& op : section->ops) {
      const auto* const collective = std::get_if<Collective>(&op.payload);
      if (collective == nullptr || collective->kind == CollectiveKind::barrier) continue;
      const std::uint64_t elements = staged(*collective, mesh, elements_per_call);
      if (elements == 0) continue;
      const auto& buffer = program.buffers[collective->send.buffer];
      bytes[op.stream] =
          std::max(bytes[op.stream], units::Bytes{elements * program::element_size(buffer.dtype)});
    }
  }
  return bytes;
}

}  // namespace isoscale::executor::host
