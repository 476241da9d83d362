// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/bucket_reduction.hpp"

#include <cmath>

#include "workloads/stack/matrix.hpp"
#include "workloads/stack/options.hpp"

namespace isoscale::workloads::stack {
namespace {

using program::BufferId;
using program::DType;
using program::Slice;

}  // namespace

DType travel_type(const Request& request) {
  const OptionReader options{option_table(), request.options};
  if (options.is("grad_dtype", "bf16")) return DType::bf16;
  if (options.is("grad_dtype", "f16")) return DType::f16;
  return types_of(request.precision).accumulate;
}

TopK top_k_of(const Request& request) {
  const OptionReader options{option_table(), request.options};
  const long long block = options.integer("compression_block");
  const long long percent = options.integer("compression_ratio");
  return {.block = static_cast<std::uint32_t>(block),
          .keep = static_cast<std::uint32_t>((block * percent + 99) / 100)};
}

BucketReduction::BucketReduction(program::Builder& builder, const Geometry& geometry,
                                 const Request& request, BufferId gradients)
    : builder_(builder),
      type_(types_of(request.precision).accumulate),
      travel_type_(travel_type(request)),
      mesh_(request.mesh) {
  // What travels in a narrow type is the mean over tokens, or half of it to twice: a sum over many
  // would leave the range of f16. A power of two costs no digit.
  const double tokens = static_cast<double>(geometry.tokens) * geometry.all_microbatches *
                        (geometry.replicas / request.mesh.dp);
  scale_ = std::exp2(-std::round(std::log2(tokens)));
  const OptionReader options{option_table(), request.options};
  if (!options.is("compression", "topk") || geometry.replicas == 1) return;
  top_k_ = top_k_of(request);
  const std::uint64_t count = builder_.buffer(gradients).count;
  unsent_ = builder_.allocate({.dtype = type_, .role = program::Role::gradient, .count = count});
  builder_.at({.phase = program::Phase::setup});
  builder_.emit(0, program::Fill{.dst = builder_.whole(unsent_),
                                 .shard = {.extents = {1, 1, count}, .local = {0, 0, 1}},
                                 .source = program::FillSource::constant,
                                 .value = 0});
}

void BucketReduction::write(program::StreamId stream, const Slice& bucket, mesh::AxisSet axes) {
  if (unsent_ != program::no_buffer) return exchange_largest(stream, bucket, axes);
  if (travel_type_ != type_) return all_reduce_narrow(stream, bucket, axes);
  all_reduce(stream, bucket, axes);
}

void BucketReduction::all_reduce(program::StreamId stream, const Slice& slice, mesh::AxisSet axes) {
  builder_.emit(stream, program::Collective{.kind = program::CollectiveKind::all_reduce,
                                            .axes = axes,
                                            .send = slice,
                                            .receive = slice});
}

BufferId BucketReduction::workspace(DType type, std::uint64_t count) {
  return builder_.allocate({.dtype = type, .role = program::Role::workspace, .count = count});
}

void BucketReduction::all_reduce_narrow(program::StreamId stream, const Slice& bucket,
                                        mesh::AxisSet axes) {
  const BufferId narrow = workspace(travel_type_, bucket.count);
  const Slice travels = builder_.whole(narrow);
  const auto cast = [&](program::StreamId on, const Slice& from, const Slice& to, double scale) {
    builder_.emit(on, program::Cast{.rows = 1,
                                    .columns = static_cast<std::uint32_t>(bucket.count),
                                    .src = dense(from, 1, bucket.count),
                                    .dst = dense(to, 1, bucket.count),
                                    .scale = scale});
  };
  // The way there comes with backward, which has just written the bucket; the way back waits for
  // the reduction, and backward must not wait with it.
  cast(0, bucket, travels, scale_);
  all_reduce(stream, travels, axes);
  cast(stream, travels, bucket, 1 / scale_);
  builder_.release(narrow);
}

void BucketReduction::exchange_largest(program::StreamId stream, const Slice& bucket,
                                       mesh::AxisSet axes) {
  const auto parts = static_cast<std::uint32_t>(mesh::group_size(mesh_, axes));
  const std::uint64_t kept = top_k_.kept(bucket.count);
  const Slice unsent{.buffer = unsent_, .offset = bucket.offset, .count = bucket.count};
  const BufferId values = workspace(type_, kept), places = workspace(DType::i32, kept);
  const BufferId all_values = workspace(type_, kept * parts);
  const BufferId all_places = workspace(DType::i32, kept * parts);
  builder_.emit(0, program::Add{.rows = 1,
                                .columns = static_cast<std::uint32_t>(bucket.count),
                                .a = dense(unsent, 1, bucket.count),
                                .b = dense(bucket, 1, bucket.count),
                                .dst = dense(unsent, 1, bucket.count)});
  builder_.emit(0, program::Select{.block = top_k_.block,
                                   .keep = top_k_.keep,
                                   .src = unsent,
                                   .values = builder_.whole(values),
                                   .places = builder_.whole(places)});
  const auto gather = [&](BufferId from, BufferId to) {
    builder_.emit(stream, program::Collective{.kind = program::CollectiveKind::all_gather,
                                              .axes = axes,
                                              .send = builder_.whole(from),
                                              .receive = builder_.whole(to)});
    builder_.release(from);
  };
  gather(values, all_values);
  gather(places, all_places);
  builder_.emit(stream, program::Spread{.block = top_k_.block,
                                        .keep = top_k_.keep,
                                        .parts = parts,
                                        .values = builder_.whole(all_values),
                                        .places = builder_.whole(all_places),
                                        .dst = bucket});
  builder_.release(all_values);
  builder_.release(all_places);
}

}  // namespace isoscale::workloads::stack
