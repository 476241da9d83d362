// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "program/builder.hpp"
#include "workloads/api/workload.hpp"
#include "workloads/stack/linear.hpp"
#include "workloads/stack/partitioning.hpp"
#include "workloads/stack/training_state_buffers.hpp"

namespace isoscale::workloads::stack {

/// Returns where the elements [sequence][sample][columns] of a microbatch are in the global tensor
/// [sample][sequence][whole]. Samples are numbered [dp][ep][microbatch][in microbatch], so that a
/// batch has the same data however it is distributed. The sequence is split over cp and, between
/// pairs of GEMMs with sequence parallelism, also over tp. Columns are split over tp if `whole` is
/// larger than `columns`.
[[nodiscard]] Shard sample_shard(const Geometry& geometry, int microbatch, std::uint64_t columns,
                                 std::uint64_t whole);
/// Returns the same as sample_shard(), but for `positions` of this rank's part of the sequence. All
/// ranks of tp have these positions.
[[nodiscard]] Shard position_shard(const Geometry& geometry, int microbatch, std::uint64_t columns,
                                   std::uint64_t whole, const Positions& positions);

/// Provides the inputs of the first stage. They are on the device for the whole run, or each
/// microbatch is copied to the device from host memory, one microbatch ahead of its use, on another
/// stream than the GEMMs. With strategy=funnel the first replica has the inputs of all replicas,
/// and scatters the inputs of each microbatch just before they are used.
class Inputs : public OpWriter {
 public:
  /// Allocates the inputs. The setup section, which is run once before the first step, fills them.
  /// Does nothing on later stages and, with strategy=funnel, on replicas other than the first.
  Inputs(Builder& builder, const Geometry& geometry, const Types& types, const Request& request);

  /// Returns the input of a microbatch; ops that are written afterwards may read it. Called once
  /// for each microbatch, in order.
  [[nodiscard]] BufferId take(int microbatch) {
    return funnels(g_) ? scatter(microbatch) : source_of(microbatch);
  }

 private:
  void copy(int microbatch);
  [[nodiscard]] BufferId source_of(int microbatch);
  [[nodiscard]] BufferId scatter(int microbatch);
  /// Returns the number of elements of a microbatch, for all replicas whose inputs are here.
  [[nodiscard]] std::uint64_t source_count() const {
    return static_cast<std::uint64_t>(parts_) * g_.activation();
  }

  int parts_ = 1;                  ///< number of replicas whose inputs are on this rank
  std::vector<BufferId> sources_;  ///< the inputs of each microbatch
  std::map<int, BufferId> copied_;
};

}  // namespace isoscale::workloads::stack
