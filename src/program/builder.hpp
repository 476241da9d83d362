// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mesh/mesh.hpp"
#include "program/buffer.hpp"
#include "program/op.hpp"
#include "program/program.hpp"

namespace isoscale::program {

/// Writes a RankProgram. The author names buffers, streams and ops in program order; storage and
/// dependencies are derived from the slices that ops read and write, so a race cannot be written.
class Builder {
 public:
  explicit Builder(const mesh::Shape& mesh);
  /// Those of the buffers, numbered in the order in which they are allocated, that `symmetric`
  /// names and that are meant for Space::device go to Space::symmetric: for an author who writes a
  /// program a second time, once it is known which of its buffers travel. Sorted.
  Builder(const mesh::Shape& mesh, std::vector<BufferId> symmetric);
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  /// The stream of that name, made when first asked for; "compute" is stream 0.
  /// Throws std::length_error beyond max_streams.
  [[nodiscard]] StreamId stream(std::string_view name);

  /// A logical buffer; its storage is found when it is first used. `offset` of `buffer` is ignored.
  [[nodiscard]] BufferId allocate(Buffer buffer);
  /// No later op uses the buffer: its storage may serve another, once its last users are known to
  /// have finished before that one's first; not where it was written in an earlier section, for
  /// steps are played again.
  void release(BufferId id);

  /// Ops emitted from now on belong to this section. Sections come in order, setup first; each has
  /// ended, streams drained, when the next begins. Where there are several steps, what one of them
  /// reads must have been written in setup or in that step.
  void begin(Section section);
  /// Ops emitted from now on stand here in the model.
  void at(Place place);
  [[nodiscard]] const Place& place() const;
  void emit(StreamId stream, Payload payload);

  void observe(std::string name, Slice slice, Shard shard);

  /// The finished program; the builder is spent.
  [[nodiscard]] RankProgram finish();

  // Whole-buffer views, for the authors of workloads.
  [[nodiscard]] Slice whole(BufferId buffer) const;
  [[nodiscard]] const Buffer& buffer(BufferId buffer) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace isoscale::program
