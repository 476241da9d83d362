// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "results/hdf5_types.hpp"

namespace isoscale::results::hdf5 {
namespace {

constexpr hsize_t chunked_from = hsize_t{64} * 1024;  ///< bytes; smaller sets are one piece
constexpr hsize_t chunk_bytes = hsize_t{1} << 20U;    ///< what HDF5's chunk cache holds

TypeId text_type(std::size_t length) {
  TypeId type{check(H5Tcopy(H5T_C_S1))};
  check(H5Tset_size(type.get(), length));
  check(H5Tset_strpad(type.get(), H5T_STR_NULLPAD));
  check(H5Tset_cset(type.get(), H5T_CSET_UTF8));
  return type;
}

/// Chunks of about a mebibyte, whole rows where they fit, compressed and check-summed as far as
/// this HDF5 can.
PropertyId storage(std::span<const hsize_t> dims, hsize_t element_size) {
  PropertyId create{check(H5Pcreate(H5P_DATASET_CREATE))};
  hsize_t bytes = element_size;
  for (const hsize_t extent : dims) bytes *= extent;
  if (bytes < chunked_from || dims.empty()) return create;  // one value is one piece
  std::vector<hsize_t> chunk(dims.begin(), dims.end());
  hsize_t room = std::max<hsize_t>(chunk_bytes / element_size, 1);
  for (std::size_t axis = chunk.size(); axis-- > 0;) {
    chunk[axis] = std::clamp<hsize_t>(room, 1, chunk[axis]);
    room = std::max<hsize_t>(room / chunk[axis], 1);
  }
  check(H5Pset_chunk(create.get(), static_cast<int>(chunk.size()), chunk.data()));
  if (H5Zfilter_avail(H5Z_FILTER_DEFLATE) > 0) {
    check(H5Pset_shuffle(create.get()));
    check(H5Pset_deflate(create.get(), 1));
  }
  if (H5Zfilter_avail(H5Z_FILTER_FLETCHER32) > 0) check(H5Pset_fletcher32(create.get()));
  return create;
}

void write_attribute(hid_t dataset, const char* name, hid_t type, hid_t space, const void* value) {
  const AttributeId id{check(H5Acreate2(dataset, name, type, space, H5P_DEFAULT, H5P_DEFAULT))};
  check(H5Awrite(id.get(), type, value));
}

/// A list of texts of variable length as an attribute: h5py gives an array of str.
void write_attribute(hid_t dataset, const char* name, std::span<const std::string> texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  const hsize_t count = pointers.size();
  const SpaceId space{check(H5Screate_simple(1, &count, nullptr))};
  TypeId type{check(H5Tcopy(H5T_C_S1))};
  check(H5Tset_size(type.get(), H5T_VARIABLE));
  check(H5Tset_cset(type.get(), H5T_CSET_UTF8));
  write_attribute(dataset, name, type.get(), space.get(),
                  static_cast<const void*>(pointers.data()));
}

void write_about(hid_t dataset, const About& about) {
  const SpaceId scalar{check(H5Screate(H5S_SCALAR))};
  TypeId type{check(H5Tcopy(H5T_C_S1))};
  check(H5Tset_size(type.get(), H5T_VARIABLE));
  check(H5Tset_cset(type.get(), H5T_CSET_UTF8));
  for (const auto& [name, view] :
       {std::pair{"unit", about.unit}, std::pair{"description", about.description}}) {
    const std::string text{view};
    const char* pointer = text.c_str();
    write_attribute(dataset, name, type.get(), scalar.get(), static_cast<const void*>(&pointer));
  }
}

/// Writes what HDF5 still holds of it. Where that fails the file would lack it without a word.
void close(DatasetId dataset) { check(H5Dclose(dataset.release())); }

/// No dimension = one value.
DatasetId write_raw(hid_t group, const std::string& name, hid_t file_type, hid_t memory_type,
                    std::span<const hsize_t> dims, const void* values, const About& about) {
  const SpaceId space{
      dims.empty() ? check(H5Screate(H5S_SCALAR))
                   : check(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr))};
  const PropertyId create = storage(dims, size_of_type(file_type));
  DatasetId dataset{check(H5Dcreate2(group, name.c_str(), file_type, space.get(), H5P_DEFAULT,
                                     create.get(), H5P_DEFAULT))};
  if (std::find(dims.begin(), dims.end(), 0U) == dims.end()) {
    check(H5Dwrite(dataset.get(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
  }
  write_about(dataset.get(), about);
  return dataset;
}

void write_texts_as(hid_t group, const std::string& name, std::span<const std::string> texts,
                    std::span<const hsize_t> dims, const About& about) {
  std::vector<std::string> clean;
  std::size_t length = 1;  // HDF5 has no text of length 0
  for (const std::string& text : texts) {
    clean.push_back(valid_utf8(text));
    length = std::max(length, clean.back().size());
  }
  std::string bytes(length * clean.size(), '\0');
  for (std::size_t index = 0; index < clean.size(); ++index) {
    clean[index].copy(bytes.data() + index * length, length);
  }
  const TypeId type = text_type(length);
  close(write_raw(group, name, type.get(), type.get(), dims, bytes.data(), about));
}

}  // namespace

template <Number T>
void Group::write(const std::string& name, std::span<const T> values, const About& about) {
  const NumberTypes types = types_of(T{});
  const std::array<hsize_t, 1> dims{values.size()};
  close(write_raw(id_.get(), name, types.file, types.memory, dims, values.data(), about));
}

template <Number T>
void Group::write_table(const std::string& name, const Table<T>& table, const About& about) {
  const NumberTypes types = types_of(T{});
  const std::array<hsize_t, 2> dims{table.rows, table.columns};
  close(write_raw(id_.get(), name, types.file, types.memory, dims, table.values.data(), about));
}

void Group::write_texts(const std::string& name, std::span<const std::string> texts,
                        const About& about) {
  const std::array<hsize_t, 1> dims{texts.size()};
  write_texts_as(id_.get(), name, texts, dims, about);
}

void Group::write_text(const std::string& name, const std::string& text, const About& about) {
  write_texts_as(id_.get(), name, std::span{&text, 1}, {}, about);
}

void Group::write_codes(const std::string& name, std::span<const std::uint8_t> codes,
                        std::span<const std::string> values, const About& about) {
  const NumberTypes types = types_of(std::uint8_t{});
  const std::array<hsize_t, 1> dims{codes.size()};
  DatasetId dataset =
      write_raw(id_.get(), name, types.file, types.memory, dims, codes.data(), about);
  write_attribute(dataset.get(), "values", values);
  close(std::move(dataset));
}

template void Group::write(const std::string&, std::span<const double>, const About&);
template void Group::write(const std::string&, std::span<const std::int64_t>, const About&);
template void Group::write(const std::string&, std::span<const std::int32_t>, const About&);
template void Group::write(const std::string&, std::span<const std::uint64_t>, const About&);
template void Group::write(const std::string&, std::span<const std::uint32_t>, const About&);
template void Group::write(const std::string&, std::span<const std::uint8_t>, const About&);
template void Group::write_table(const std::string&, const Table<double>&, const About&);
template void Group::write_table(const std::string&, const Table<std::int64_t>&, const About&);
template void Group::write_table(const std::string&, const Table<std::int32_t>&, const About&);
template void Group::write_table(const std::string&, const Table<std::uint64_t>&, const About&);
template void Group::write_table(const std::string&, const Table<std::uint32_t>&, const About&);
template void Group::write_table(const std::string&, const Table<std::uint8_t>&, const About&);

}  // namespace isoscale::results::hdf5
