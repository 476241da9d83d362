// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "program/builder.hpp"
#include "workloads/api/workload.hpp"
#include "workloads/stack/linear.hpp"
#include "workloads/stack/matrices_and_op_writer.hpp"
#include "workloads/stack/partitioning.hpp"
#include "workloads/stack/training_state_buffers.hpp"

namespace isoscale::workloads::infer {

/// Returns the number of equal groups into which a batch is cut, so that up to `stages` stages have
/// work at the same time: the largest divisor of `batch` that is at most `stages`.
[[nodiscard]] std::uint64_t groups_of(std::uint64_t batch, std::uint64_t stages);

/// The weights of one stage on one rank. They have the initial values of training, but there are no
/// gradients and no optimizer states.
class Weights {
 public:
  /// Allocates the weights. The setup section, which is run once before all others, fills them with
  /// random values made from the seed.
  Weights(program::Builder& builder, const stack::Geometry& geometry, const Request& request);

  [[nodiscard]] program::Slice of(int layer_of_stage, stack::Tensor tensor) const;
  /// Returns the output projection. Only the last stage has it, and only with vocabulary=on.
  [[nodiscard]] program::Slice vocabulary() const { return slice(parameters_.front()); }

 private:
  [[nodiscard]] program::Slice slice(const stack::Parameter& entry) const {
    return stack::flat(buffer_, entry.offset, entry.count());
  }

  std::vector<stack::Parameter> parameters_;
  program::BufferId buffer_ = program::no_buffer;
};

/// Returns `tokens` rounded up to a multiple of 16. A decoded token attends to such a number of
/// tokens, as attention kernels read a cache in blocks: rows of scores then begin at multiples of
/// 16 bytes, and 16 tokens in a row have multiplications of the same shape.
[[nodiscard]] inline std::uint64_t whole_blocks(std::uint64_t tokens) {
  constexpr std::uint64_t block = 16;
  return (tokens + block - 1) / block * block;
}

/// Tokens that pass through the layers together: `positions` consecutive positions of each of
/// `samples` consecutive samples. Rows are ordered [position][sample].
struct Pass {
  std::uint64_t samples = 1, positions = 1;
  std::uint64_t first_sample = 0;  ///< index of the first of these samples in the cache
  std::uint64_t position = 0;      ///< tokens that each sample has in the cache before the pass

  [[nodiscard]] std::uint64_t rows() const { return samples * positions; }
  /// Returns the number of tokens to which each token attends: all tokens before the pass, and all
  /// tokens of the pass. If the pass has one token (a decoded one, or a prompt of one), it also
  /// attends to the rest of the last block, to whatever the cache has there.
  [[nodiscard]] std::uint64_t length() const {
    return positions == 1 ? whole_blocks(position + 1) : position + positions;
  }
};

/// The keys and values of one stage on one rank, both ordered [layer][sample][kv
/// head][position][d], where d is the head size.
class Cache {
 public:
  /// Allocates the cache, with whole_blocks(positions) positions. The setup section, which is run
  /// once before all others, fills it with random values made from the seed, as if each sample
  /// already had earlier tokens.
  Cache(program::Builder& builder, const stack::Geometry& geometry, const Request& request,
        std::uint64_t samples, std::uint64_t positions);

  enum class Part : std::uint8_t { keys, values };
  /// Returns the keys or the values of `samples` samples, beginning at sample `sample` of the pass:
  /// a batch with a matrix [pass.length()][d] for each kv head of each of these samples.
  [[nodiscard]] program::Matrix view(const program::Builder& builder, Part part, int layer,
                                     const Pass& pass, std::uint64_t sample,
                                     std::uint64_t samples) const;
  /// Returns the part of the cache where a pass stores its own keys or values, as a batch of
  /// matrices.
  [[nodiscard]] program::Matrix place(const program::Builder& builder, Part part, int layer,
                                      const Pass& pass) const;

  void observe(program::Builder& builder) const;

 private:
  /// Calls visit(name, slice) for the keys and for the values of each layer.
  void each_part(const std::function<void(const std::string&, const program::Slice&)>& visit) const;
  [[nodiscard]] program::Shard shard() const;
  [[nodiscard]] std::uint64_t head() const { return positions_ * g_.head_size; }  ///< elements
  [[nodiscard]] std::uint64_t layer_size() const { return samples_ * g_.kv_heads * head(); }

  const stack::Geometry& g_;
  std::uint64_t samples_, positions_;
  program::BufferId keys_ = program::no_buffer, values_ = program::no_buffer;
};

/// Writes the forward ops of one stage's layers on the compute stream:
///   Y = g * attention(X) * Wo + X,   Z = g * inner(Y * Wup) * Wdown + Y
/// g is Geometry::residual_gain. The ops and inner() are as in training (stack::LayerWriter),
/// except that attention reads keys and values from the cache, where the pass first stores the keys
/// and values of its tokens. There is no activation function, softmax or mask: every token of a
/// pass attends to Pass::length() tokens. Scores are scaled by 1/sqrt(d), and the context by
/// 1/sqrt(length). Under tp, partial sums are all-reduced twice in each layer.
class Layers : public stack::OpWriter {
 public:
  Layers(program::Builder& builder, const stack::Geometry& geometry, const stack::Types& types,
         const Weights& weights, const Cache& cache)
      : OpWriter(builder, geometry, types),
        weights_(weights),
        cache_(cache),
        linear_(builder, geometry, types) {}

  /// Computes the output [rows, h] of the stage's last layer from the input [rows, h] of its first
  /// one, in a new buffer.
  [[nodiscard]] program::BufferId forward(const Pass& pass, const program::Matrix& input);
  /// Computes the output projection of `rows` rows in a new buffer [rows, vocabulary / tp].
  [[nodiscard]] program::BufferId logits(const program::Matrix& input, std::uint64_t rows) {
    return multiply(
        {.weight = weights_.vocabulary(), .inputs = g_.hidden, .outputs = g_.vocabulary}, input,
        rows);
  }

 private:
  [[nodiscard]] program::BufferId attention(int layer, const Pass& pass,
                                            const program::Matrix& input);
  /// Copies the pass's keys and values from the columns of `qkv` to the cache.
  void remember(int layer, const Pass& pass, program::BufferId qkv);
  /// Computes scores and context of some samples of a pass.
  void attend(int layer, const Pass& pass, std::uint64_t sample, std::uint64_t samples,
              program::BufferId qkv, program::BufferId context);
  [[nodiscard]] program::BufferId inner(int layer, const Pass& pass, program::BufferId middle);
  /// Computes gain * X [rows, inputs] * W + addend in a new buffer [rows, outputs].
  [[nodiscard]] program::BufferId multiply(const stack::Linear& linear, const program::Matrix& x,
                                           std::uint64_t rows, const stack::Addend& addend = {});
  /// Computes gain * X [rows, inputs] * W + residual in a new buffer [rows, hidden size]. The
  /// products are summed over tp; each rank adds 1/tp of the residual, so it is added once in all.
  [[nodiscard]] program::BufferId multiply_into(const program::Matrix& residual,
                                                const program::Matrix& x,
                                                const program::Slice& weight, std::uint64_t rows,
                                                std::uint64_t inputs);

  const Weights& weights_;
  const Cache& cache_;
  stack::LinearWriter linear_;
};

/// The largest sizes that a replica has memory for.
struct Room {
  std::uint64_t samples = 1;    ///< samples that are answered at the same time
  std::uint64_t prompt = 1;     ///< tokens of a prompt
  std::uint64_t positions = 1;  ///< tokens of each sample in the cache
  std::uint64_t decoded = 1;    ///< tokens that one call of decode() generates
};

/// Writes one program for each stage. The ranks of a stage share its program: which elements a rank
/// has follows from its mesh coordinates when the program runs (Shard::steps).
template <class Write>
[[nodiscard]] program::ProgramSet by_stage(const Request& request, const Write& write) {
  return shared_programs(
      request.mesh, [&](int rank) { return mesh::coordinates(request.mesh, rank).pp; },
      [&](int stage) { return write(mesh::Coordinates{.pp = stage}); });
}

/// Writes the programs of one rank of a replica. A replica is a tp x pp mesh that answers a batch
/// of samples; there is one replica for each coordinate along dp. Weights, cache and inputs are
/// buffers that the setup section fills, which is run once. prefill() and decode() write into the
/// section that the builder has begun last. They may be called any number of times, for any sizes
/// within Room. Each call leaves in the cache what a real model would have stored, so a decode
/// may follow a prefill in the same section.
///
/// Stages work on groups_of(batch, pp) groups of samples at the same time. Prefill ends when the
/// first stage has received the first tokens of the last group. The first stage begins a group's
/// next token when it has received the previous one. A token is sent as one element for each
/// sample, taken from the last stage's answer. The first stage does not use the value of that
/// element, but continues with the embedding of a token that is drawn from the seed.
///
/// The class reads only model, mesh, precision, seed, keep and the option vocabulary of the
/// request.
class Replica {
 public:
  /// Allocates the buffers and writes their fills; `builder` must be in the setup section.
  Replica(program::Builder& builder, const Request& request, const mesh::Coordinates& at,
          const Room& room);
  ~Replica() = default;
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  /// Runs prompts of `prompt` tokens through the layers, stores their keys and values in the cache,
  /// and computes the answer to each sample's last token. With several stages it uses the streams
  /// pp_prev and pp_next. Throws base::Error if a size is 0 or larger than in Room.
  void prefill(std::uint64_t batch, std::uint64_t prompt);
  /// Generates `tokens` tokens for each sample, the first one at `position` of its cache. All ops
  /// are on the compute stream, so that passes which follow one another keep their order. Throws
  /// base::Error if a number is 0 or larger than in Room; only `position` may be 0.
  void decode(std::uint64_t batch, std::uint64_t position, std::uint64_t tokens);
  /// Marks the cache of each layer as data that verification compares (observables); outputs are
  /// marked when they are computed. May be called only with Keep::observables, and only if a single
  /// batch is run, which has Room::samples samples.
  void observe_cache() { cache_.observe(builder_); }

  [[nodiscard]] const stack::Geometry& geometry() const { return g_; }

 private:
  /// Says where the elements of an answer are in the global tensor of all samples and tokens that
  /// verification compares.
  struct Step {
    const char* name = "";
    std::uint64_t batch = 1, token = 0, tokens = 1;
  };

  void prefill_group(std::uint64_t group, const Pass& pass, std::uint64_t batch);
  /// Sends the tokens of all groups from the last stage to the first.
  void hand_back(std::uint64_t batch);
  /// Writes this stage's ops that decode a token of each sample of a group. Returns the slice that
  /// is sent to the next stage: the whole result or, on the last stage, what answer() returns.
  [[nodiscard]] program::Slice decode_group(const Pass& pass, const Step& step);
  /// Writes the messages at the end of a tick of decode(), in which a stage has computed one token
  /// of a group or nothing. Each stage sends its result, if it has one, to the next stage.
  void shift(const std::optional<program::Slice>& made,
             std::optional<std::uint64_t> samples_to_come);
  /// Computes the answer to each sample of a group from the output of the last layer. Returns one
  /// element for each sample, which represents the token that is sent to the first stage.
  [[nodiscard]] program::Slice answer(program::BufferId output, const Pass& pass, const Step& step);
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
  std::vector<program::Slice> answers_;          ///< tokens that prefill must send back
  program::BufferId held_ = program::no_buffer;  ///< decode: the received input of the next group
};

}  // namespace isoscale::workloads::infer
