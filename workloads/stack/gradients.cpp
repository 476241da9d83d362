// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/stack/weight_and_gradient_ops.hpp"

#include <cmath>
#include <limits>

namespace isoscale::workloads::stack {

namespace {

program::Buffer workspace(DType type, std::uint64_t count) {
  return {.dtype = type, .role = Role::workspace, .count = count};
}

/// Returns the factor for gradients in a narrow type. A sum over many tokens would exceed the range
/// of f16, so gradients are divided by about the number of tokens before they are cast. The scale
/// is a power of two, so no digit is lost.
double narrow_scale(const Geometry& g) {
  return std::exp2(-std::round(std::log2(g.batch_tokens())));
}

}  // namespace

DType travel_type(const Request& request) {
  const GradientType type = options_of(request).grad_dtype;
  if (type == GradientType::same) return types_of(request.precision).accumulate;
  return type == GradientType::bf16 ? DType::bf16 : DType::f16;
}

Gradients::Gradients(Builder& builder, const Geometry& geometry, const Parameters& parameters,
                     const Request& request)
    : builder_(builder),
      g_(geometry),
      parameters_(parameters),
      mesh_(request.mesh),
      type_(types_of(request.precision).accumulate),
      travel_type_(travel_type(request)),
      scale_(narrow_scale(geometry)),
      reduces_(geometry.replicas > 1 && !funnels(geometry)),
      whole_(builder, workspace(type_, parameters.largest_bucket()),
             geometry.options.reduces_in_flight + 1),
      parts_(builder, workspace(type_, parameters.largest_bucket() / parameters.plan().shards), 2) {
  if (g_.options.overlap && reduces_) stream_ = builder_.stream("dp");
  const TrainingOptions& options = g_.options;
  if (options.compression != Compression::topk || g_.replicas == 1) return;
  constexpr std::uint64_t most = std::numeric_limits<std::int32_t>::max();
  if (parameters.largest_bucket() > most) {
    throw usage_error(
        "compression=topk numbers the gradients of a bucket in 32 bits: the largest bucket has {}, "
        "{} are possible; use a smaller bucket",
        parameters.largest_bucket(), most);
  }
  const long long block = options.compression_block;
  top_k_ = {.block = static_cast<std::uint32_t>(block),
            .keep = static_cast<std::uint32_t>((block * options.compression_ratio + 99) / 100)};
  const std::uint64_t count = builder_.buffer(parameters_.states().gradients).count;
  unsent_ = builder_.allocate({.dtype = type_, .role = Role::gradient, .count = count});
  builder_.at({.phase = Phase::setup});
  fill_flat(builder_, builder_.whole(unsent_), 0);
}

void Gradients::all_reduce(const Slice& bucket, mesh::AxisSet axes) {
  if (unsent_ != no_buffer) return exchange_largest(bucket, axes);
  const bool is_narrow = travel_type_ != type_;
  const Slice travels = is_narrow ? narrowed(bucket) : bucket;
  communicate(builder_, stream_, CollectiveKind::all_reduce, axes, travels, travels);
  if (is_narrow) widen(travels, bucket);
}

void Gradients::cast(StreamId on, const Slice& from, const Slice& to, double scale) {
  const std::vector<Slice> sources = program::pieces_of(from), targets = program::pieces_of(to);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    builder_.emit(on, program::Cast{.rows = 1,
                                    .columns = extent(sources[i].count),
                                    .src = {.slice = sources[i], .row_stride = sources[i].count},
                                    .dst = {.slice = targets[i], .row_stride = targets[i].count},
                                    .scale = scale});
  }
}

Slice Gradients::narrowed(const Slice& wide) {
  const Slice narrow = builder_.whole(builder_.temporary(workspace(travel_type_, wide.count)));
  cast(0, wide, narrow, scale_);  // on backward's stream, which has just written the gradients
  return narrow;
}

void Gradients::widen(const Slice& narrow, const Slice& wide) {
  // This cast is on the stream of the reduction, so that backward's stream does not wait for it.
  cast(stream_, narrow, wide, 1 / scale_);
}

void Gradients::exchange_largest(const Slice& bucket, mesh::AxisSet axes) {
  const auto parts = static_cast<std::uint32_t>(mesh::group_size(mesh_, axes));
  // The last block has `keep` elements here, too, even if it is shorter.
  const std::uint64_t kept = (bucket.count + top_k_.block - 1) / top_k_.block * top_k_.keep;
  const Slice unsent{.buffer = unsent_, .offset = bucket.offset, .count = bucket.count};
  const BufferId values = builder_.temporary(workspace(type_, kept));
  const BufferId places = builder_.temporary(workspace(DType::i32, kept));
  const BufferId all_values = builder_.temporary(workspace(type_, kept * parts));
  const BufferId all_places = builder_.temporary(workspace(DType::i32, kept * parts));
  add_flat(builder_, 0, bucket, unsent);
  builder_.emit(0, program::Select{.block = top_k_.block,
                                   .keep = top_k_.keep,
                                   .src = unsent,
                                   .values = builder_.whole(values),
                                   .places = builder_.whole(places)});
  const auto gather = [&](BufferId from, BufferId to) {
    communicate(builder_, stream_, CollectiveKind::all_gather, axes, builder_.whole(from),
                builder_.whole(to));
  };
  gather(values, all_values);
  gather(places, all_places);
  builder_.emit(stream_, program::Spread{.block = top_k_.block,
                                         .keep = top_k_.keep,
                                         .parts = parts,
                                         .values = builder_.whole(all_values),
                                         .places = builder_.whole(all_places),
                                         .dst = bucket});
}

GradientTarget Gradients::target(const Slice& gradient, int microbatch) {
  if (!parameters_.plan().shards_gradients()) {
    return {.slice = gradient, .beta = microbatch == 0 ? 0.0 : 1.0};
  }
  const Bucket& bucket = parameters_.bucket_of(gradient);
  const auto [entry, is_new] = open_.try_emplace({&bucket, microbatch}, no_buffer);
  if (is_new) {
    entry->second = whole_.take();
    fill_flat(builder_, flat(entry->second, bucket.count - bucket.padding, bucket.padding), 0);
  }
  return {.slice = flat(entry->second, gradient.offset - bucket.offset, gradient.count)};
}

void Gradients::done(const Slice& gradient, int microbatch) {
  const Bucket* const bucket = parameters_.completed_by(gradient);
  if (bucket == nullptr) return;
  if (parameters_.plan().shards_gradients()) {
    const auto whole = open_.extract({bucket, microbatch});
    accumulate(*bucket, whole.mapped(), microbatch);
  } else if (reduces_ && g_.options.overlap && microbatch + 1 == g_.microbatches) {
    reduce(*bucket);
  }
}

void Gradients::finish() {
  if (!reduces_ || g_.options.overlap || parameters_.plan().shards_gradients()) return;
  for (const Bucket& bucket : parameters_.buckets()) reduce(bucket);
}

void Gradients::reduce(const Bucket& bucket) {
  if (bucket.of_expert && g_.replicas == g_.ep) return;
  const Place place = builder_.place();
  builder_.at({.phase = Phase::gradient_reduction, .layer = place.layer, .microbatch = -1});
  const Slice slice = parameters_.gradient(bucket);
  if (parameters_.plan().zero > 0) {
    const Slice mine = parameters_.plan().own_part(slice);
    reduce_scatter(slice, mine);
    reduce_part(mine);
  } else {
    const mesh::AxisSet dense{mesh::Axis::cp, mesh::Axis::ep, mesh::Axis::dp};
    const mesh::AxisSet expert{mesh::Axis::cp, mesh::Axis::dp};
    all_reduce(slice, bucket.of_expert ? expert : dense);
  }
  builder_.at(place);
}

void Gradients::reduce_scatter(const Slice& whole, const Slice& part) {
  const StatePlan& plan = parameters_.plan();
  if (travel_type_ == type_) {
    return communicate(builder_, stream_, CollectiveKind::reduce_scatter, plan.axis, whole, part);
  }
  const Slice sent = narrowed(whole);
  const Slice received = plan.own_part(sent);
  communicate(builder_, stream_, CollectiveKind::reduce_scatter, plan.axis, sent, received);
  widen(received, part);
}

void Gradients::reduce_part(const Slice& part) {
  if (g_.replicas == static_cast<int>(parameters_.plan().shards)) return;
  const mesh::AxisSet all{mesh::Axis::cp, mesh::Axis::ep, mesh::Axis::dp};
  communicate(builder_, stream_, CollectiveKind::all_reduce, all - parameters_.plan().axis, part,
              part);
}

void Gradients::accumulate(const Bucket& bucket, BufferId whole, int microbatch) {
  const Place place = builder_.place();
  builder_.at({.phase = Phase::gradient_reduction, .layer = place.layer, .microbatch = microbatch});
  const Slice sum = parameters_.part(parameters_.states().gradients, bucket);
  const Slice sent = flat(whole, 0, bucket.count);
  if (microbatch == 0) {
    reduce_scatter(sent, sum);
  } else {
    const BufferId received = parts_.take();
    reduce_scatter(sent, flat(received, 0, sum.count));
    add_flat(builder_, stream_, flat(received, 0, sum.count), sum);
    parts_.give_back(received);
  }
  whole_.give_back(whole);
  if (microbatch + 1 == g_.microbatches) reduce_part(sum);
  builder_.at(place);
}

}  // namespace isoscale::workloads::stack
