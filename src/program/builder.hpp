// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mesh/mesh.hpp"
#include "program/dtypes_and_buffers.hpp"
#include "program/op.hpp"
#include "program/program.hpp"

namespace isoscale::program {

/// Writes a RankProgram. The caller adds buffers, streams and ops in program order. finish()
/// derives storage and dependencies from the slices that ops read and write, so that the program
/// has no race.
class Builder {
 public:
  explicit Builder(const mesh::Shape& mesh);
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  /// Returns the stream of that name and creates it at first use; "compute" is stream 0. Throws
  /// std::length_error beyond max_streams.
  [[nodiscard]] StreamId stream(std::string_view name);

  /// Adds a logical buffer, which has its storage from its first use to the end of the program.
  /// `offset` of `buffer` is ignored.
  [[nodiscard]] BufferId allocate(const Buffer& buffer);
  /// Adds a logical buffer like allocate(), but its storage ends after the last op that uses it. It
  /// may then serve a buffer whose first user is known to come after the last users of this one.
  /// The storage is kept to the end nevertheless if ops of several sections use the buffer, because
  /// a step may be run again and then reads it again, or if an observable names it.
  [[nodiscard]] BufferId temporary(const Buffer& buffer);

  /// Starts a section, to which the ops emitted from now on belong. Sections must be started in
  /// order, with setup first. When a section is run, all ops of the previous section have finished.
  /// With several steps, each may read only data that was written in setup or in the same step.
  void begin(Section section);
  /// Sets the place in the model (phase, layer, microbatch) of the ops emitted from now on.
  void at(Place place);
  [[nodiscard]] const Place& place() const;
  /// Appends an op. Throws base::Error if the op is malformed, or a slice ends past its buffer.
  void emit(StreamId stream, Payload payload);

  void observe(std::string name, Slice slice, Shard shard);

  /// Returns the program as written so far, without storage and dependencies. Until finish() is
  /// called, the caller may change in which spaces its buffers are and how its ops communicate.
  [[nodiscard]] RankProgram& draft();
  /// Returns the finished program; the builder cannot be used afterwards. Throws base::Error if an
  /// op reads elements that nothing has written.
  [[nodiscard]] RankProgram finish();

  /// Returns the slice that covers a whole buffer.
  [[nodiscard]] Slice whole(BufferId buffer) const;
  /// Returns the description of a buffer: its type, role and number of elements.
  [[nodiscard]] const Buffer& buffer(BufferId buffer) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns the programs of a mesh whose ranks all run the same program.
[[nodiscard]] ProgramSet alike(const mesh::Shape& mesh, RankProgram program);

}  // namespace isoscale::program
