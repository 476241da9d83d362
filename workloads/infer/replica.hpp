// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "program/builder.hpp"
#include "workloads/infer/layers.hpp"
#include "workloads/infer/weights.hpp"
#include "workloads/stack/geometry.hpp"
#include "workloads/workload.hpp"

namespace isoscale::workloads::infer {

/// What a replica has memory for.
struct Room {
  std::uint64_t samples = 1;    ///< that it answers at once, at most
  std::uint64_t prompt = 1;     ///< tokens of a prompt, at most
  std::uint64_t positions = 1;  ///< of the cache, for each sample
  std::uint64_t decoded = 1;    ///< tokens that one call of decode generates, at most
};

/// Writes what one rank of one replica plays: a tp x pp mesh that answers a batch of samples,
/// beside dp others. Weights, cache and inputs are one buffer table, filled in setup; prefill and
/// decode write into whichever section the builder stands in, as often as wanted, for any sizes
/// within the room. Each leaves the cache as the model has it: a decode may follow a prefill in one
/// section.
///
/// Stages work on groups_of(batch, pp) groups of samples at once. Prefill ends when the first stage
/// has the last group's first tokens; a group's next token begins when the first stage has the one
/// before. A token travels as one element for each sample, taken from the last stage's answer; what
/// the first stage goes on with is the embedding of a token drawn from the seed.
///
/// The request's model, mesh, precision, seed, keep and, of its options, vocabulary count.
class Replica {
 public:
  /// `builder` stands in setup. Allocates and fills.
  Replica(program::Builder& builder, const Request& request, const mesh::Coordinates& at,
          const Room& room);
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  /// Runs prompts of `prompt` tokens through the layers, fills the cache up to there, and answers
  /// each sample's last token. On several stages it uses streams pp_prev and pp_next.
  /// Throws base::Error beyond the room.
  void prefill(std::uint64_t batch, std::uint64_t prompt);
  /// Generates `tokens` tokens for each sample, the first at `position` of its cache. All of it is
  /// on the compute stream, so that passes that follow each other at once keep their order.
  /// Throws base::Error beyond the room.
  void decode(std::uint64_t batch, std::uint64_t position, std::uint64_t tokens);
  /// The cache, as observables by layer; outputs are observed as they are made. Only one batch of
  /// all the room's samples may be written then, and only under Keep::observables.
  void observe_cache() { cache_.observe(builder_); }

  [[nodiscard]] const stack::Geometry& geometry() const { return g_; }

 private:
  /// What a stage made of a group, and what of it the next one is sent: all of it, or of the last
  /// stage's answer an element for each sample, the tokens.
  struct Product {
    program::BufferId buffer = program::no_buffer;
    program::Slice sent{};
  };
  /// Places the elements of an answer among those of all samples and tokens.
  struct Step {
    const char* name = "";
    std::uint64_t batch = 1, token = 0, tokens = 1;
  };

  void fill_inputs(const Request& request);
  void prefill_group(std::uint64_t group, const Pass& pass, std::uint64_t batch);
  /// The tokens of all groups go from the last stage to the first, around the ring.
  void hand_back(std::uint64_t batch);
  /// This stage's part of a token of a group.
  [[nodiscard]] Product decode_group(const Pass& pass, const Step& step);
  /// The messages that end a tick, at once: a shift of the ring by one stage.
  void shift(const std::optional<Product>& made, std::optional<std::uint64_t> samples_to_come);
  [[nodiscard]] Product answer(program::BufferId output, const Pass& pass, const Step& step);
  void observe(program::BufferId answer, const Pass& pass, const Step& step,
               std::uint64_t rows_of_sample);
  /// Keeps what is observed: the answers.
  void drop(const Product& product);
  void require(std::uint64_t asked, std::uint64_t room, const char* what) const;
  [[nodiscard]] std::uint64_t stages() const { return static_cast<std::uint64_t>(g_.stages); }

  program::Builder& builder_;
  Keep keep_;
  Room room_;
  stack::Geometry g_;
  stack::Types types_;
  Weights weights_;
  Cache cache_;
  Layers layers_;
  program::BufferId prompts_ = program::no_buffer, tokens_ = program::no_buffer;
  std::vector<Product> answers_;                 ///< of prefill, until their tokens go back
  program::BufferId held_ = program::no_buffer;  ///< of decode: received, the next group's input
};

}  // namespace isoscale::workloads::infer
