// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/device_barrier.hpp"

#include <algorithm>
#include <set>

#include "executor/cuda/check.hpp"
#include "executor/cuda/memory.hpp"

namespace isoscale::executor::cuda {
namespace {

std::vector<ncclComm_t> used_in(std::size_t section, const program::ProgramSet& set,
                                const Communicators& communicators) {
  std::set<std::pair<mesh::AxisSet, program::StreamId>> uses;
  for (const program::RankProgram& program : set.programs) {
    const auto sections = program.sections();
    if (section >= sections.size()) continue;
    for (const program::Op& op : sections[section]->ops) {
      const auto* const collective = std::get_if<program::Collective>(&op.payload);
      if (collective != nullptr) uses.emplace(collective->axes, op.stream);
    }
  }
  std::vector<ncclComm_t> result;
  for (const auto& [axes, stream] : uses) result.push_back(communicators.collective(axes, stream));
  return result;
}

}  // namespace

DeviceBarrier::DeviceBarrier(const program::ProgramSet& set, const Communicators& communicators) {
  std::size_t sections = 0;
  for (const program::RankProgram& program : set.programs) {
    sections = std::max(sections, program.sections().size());
  }
  for (std::size_t section = 0; section < sections; ++section) {
    of_section_.push_back(used_in(section, set, communicators));
  }
  if (std::ranges::all_of(of_section_, &std::vector<ncclComm_t>::empty)) return;
  word_ = allocate_device(units::Bytes{sizeof(float)});
}

void DeviceBarrier::enter(program::Section section, cudaStream_t stream) const {
  const auto index = static_cast<std::size_t>(section);
  if (index >= of_section_.size()) return;
  for (const ncclComm_t communicator : of_section_[index]) {
    check(ncclAllReduce(word_.get(), word_.get(), 1, ncclFloat32, ncclSum, communicator, stream));
  }
}

}  // namespace isoscale::executor::cuda
