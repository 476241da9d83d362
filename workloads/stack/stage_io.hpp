// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "program/builder.hpp"
#include "workloads/api/workload.hpp"
#include "workloads/stack/geometry.hpp"
#include "workloads/stack/linear.hpp"
#include "workloads/stack/parameters.hpp"
#include "workloads/stack/pipeline.hpp"

namespace isoscale::workloads::stack {

/// Returns where the elements [sequence][sample][columns] of a microbatch are in the global tensor
/// [sample][sequence][whole]. Samples are numbered [dp][ep][microbatch][in microbatch], so that a
/// batch has the same data however it is distributed. The sequence is split over cp and, between
/// pairs of GEMMs with sequence parallelism, also over tp. Columns are split over tp if `whole` is
/// larger than `columns`.
[[nodiscard]] Shard sample_shard(const Geometry& geometry, int microbatch, std::uint64_t columns,
                                 std::uint64_t whole);
/// Returns the same as sample_shard(), but for some positions of this rank's part of the sequence,
/// which all ranks of tp have.
[[nodiscard]] Shard position_shard(const Geometry& geometry, int microbatch, std::uint64_t columns,
                                   std::uint64_t whole, const Positions& positions);

/// Provides the inputs of the first stage. They are on the device for the whole run, or each
/// microbatch is copied to the device from host memory, one microbatch ahead of its use, on another
/// stream than the GEMMs. With strategy=funnel the first replica has the inputs of all replicas,
/// and scatters those of each microbatch just before its use.
class Inputs : public OpWriter {
 public:
  /// Allocates the inputs. The setup section, which is run once before the first step, fills them.
  /// Does nothing on later stages and, with strategy=funnel, on replicas other than the first.
  Inputs(Builder& builder, const Geometry& geometry, const Types& types, const Request& request);

  /// Returns the input of a microbatch; ops that are written afterwards may read it. Called once
  /// for each microbatch, in order.
  [[nodiscard]] BufferId take(int microbatch);
  /// Releases the input of a microbatch, unless it is kept on the device for the whole run. Call
  /// this after the microbatch's backward pass.
  void give_back(BufferId input);
  /// True if the buffers that take() returns are kept on the device for the whole run.
  [[nodiscard]] bool keeps() const;

 private:
  void fill(int microbatch, BufferId source, std::uint64_t key);
  void copy(int microbatch);
  [[nodiscard]] BufferId source_of(int microbatch);
  [[nodiscard]] BufferId scatter(int microbatch);
  [[nodiscard]] std::uint64_t source_count() const;  ///< elements of one microbatch

  int parts_ = 1;                  ///< number of replicas whose inputs are on this rank
  std::vector<BufferId> sources_;  ///< the inputs of each microbatch
  std::map<int, BufferId> copied_;
};

/// Sends activations [shard_tokens, hidden] and their gradients between stages. They are sent as a
/// whole, or each rank of tp sends only its rows, and the receiving ranks gather all rows
/// (Narayanan et al., arXiv 2104.04473, section 4.1).
class HandOvers : public OpWriter {
 public:
  using OpWriter::OpWriter;

  /// Stores the result of an action until the message that sends it is written. The message then
  /// releases it, unless it is kept: a stage without layers may send an input of the run, or an
  /// output that verification reads.
  void leave(const Action& made, const Passed& result) { made_[made] = result; }
  /// Appends the exchange of messages with a neighbouring stage to the program.
  void write(const HandOver& message);
  /// Returns the input that was received for an action. The caller must release it.
  [[nodiscard]] BufferId take(const Action& awaited);

 private:
  /// Gathers the rows of all ranks of tp; `part` has this rank's rows.
  [[nodiscard]] BufferId gather(BufferId part, const Action& awaited);
  [[nodiscard]] KeptFor kept_for(const Action& awaited) const;

  std::map<Action, Passed> made_;
  std::map<Action, BufferId> received_;
};

/// Trains replicas like torch.nn.DataParallel (see its documentation; Li et al., arXiv 2006.15704,
/// compare with it). The first replica gathers all outputs and scatters their gradients. After
/// backward it sums the weight gradients of all replicas, updates the weights, and broadcasts them.
/// All ops are on the compute stream, so nothing overlaps. Ranks communicate only with ranks of
/// other replicas that have the same coordinates along tp and pp. The inputs are scattered by the
/// class Inputs.
class Funnel : public OpWriter {
 public:
  using OpWriter::OpWriter;

  /// Gathers the outputs of all replicas for a microbatch on the first replica.
  void gather_output(int microbatch, BufferId output);
  /// Returns a new buffer with this replica's part of the gradient of the outputs, which the first
  /// replica scatters. It equals the outputs, since loss = 1/2 |Y|^2.
  [[nodiscard]] BufferId loss_gradient(int microbatch);
  /// Sums gradients over replicas on the first one, bucket by bucket. Does nothing unless
  /// funnels() is true.
  void reduce(const Parameters& parameters);
  /// Broadcasts the first replica's weights to all replicas. Does nothing unless funnels() is true.
  void broadcast(const Parameters& parameters);

 private:
  void emit(CollectiveKind kind, const Slice& send, const Slice& receive);

  [[nodiscard]] bool is_root() const { return g_.at.dp == 0; }

  std::uint64_t count_ = 0;           ///< elements of the output of one replica
  std::map<int, BufferId> of_all_{};  ///< on the first replica: outputs of all, by microbatch
};

}  // namespace isoscale::workloads::stack
