// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "results/hdf5/hdf5.hpp"

namespace isoscale::results::hdf5 {
namespace {

constexpr hsize_t chunked_from = hsize_t{64} * 1024;  ///< bytes; smaller datasets are not chunked

constexpr hsize_t chunk_bytes = hsize_t{1} << 20U;  ///< bytes; HDF5's default chunk cache size

/// Returns the properties with which a dataset is created (see Group::write). Chunks have at most
/// 1 MiB, of whole rows if these fit.
PropertyId storage(std::span<const hsize_t> dims, hsize_t element_size) {
  PropertyId create{check(H5Pcreate(H5P_DATASET_CREATE))};
  hsize_t bytes = element_size;
  for (const hsize_t extent : dims) bytes *= extent;
  if (bytes < chunked_from || dims.empty()) return create;  // a single value is not chunked
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

/// Writes an attribute of variable-length text: a list, or a single text if `space` is scalar.
void write_attribute(hid_t dataset, const char* name, const SpaceId& space,
                     std::span<const std::string> texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  const TypeId type = text_type(H5T_VARIABLE);
  const AttributeId id{
      check(H5Acreate2(dataset, name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT))};
  check(H5Awrite(id.get(), type.get(), static_cast<const void*>(pointers.data())));
}

/// Closes a dataset, which writes the data that HDF5 still has in memory, so a failure must throw.
void close(DatasetId dataset) { check(H5Dclose(dataset.release())); }

/// Writes a dataset; without dimensions it holds a single value.
DatasetId write_raw(hid_t group, const std::string& name, hid_t file_type, hid_t memory_type,
                    Dimensions dimensions, const void* values, const About& about) {
  const std::vector<hsize_t> dims(dimensions.begin(), dimensions.end());
  const SpaceId space{
      dims.empty() ? check(H5Screate(H5S_SCALAR))
                   : check(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr))};
  const PropertyId create = storage(dims, size_of_type(file_type));
  DatasetId dataset{check(H5Dcreate2(group, name.c_str(), file_type, space.get(), H5P_DEFAULT,
                                     create.get(), H5P_DEFAULT))};
  if (std::find(dims.begin(), dims.end(), 0U) == dims.end()) {
    check(H5Dwrite(dataset.get(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
  }
  const SpaceId scalar{check(H5Screate(H5S_SCALAR))};
  write_attribute(dataset.get(), "unit", scalar, std::array{std::string{about.unit}});
  write_attribute(dataset.get(), "description", scalar, std::array{std::string{about.description}});
  return dataset;
}

/// A deflate stream never unpacks to more than 1032 times its size: in RFC 1951, a match of at most
/// 258 bytes takes at least 2 bits.
constexpr hsize_t most_unpacked = 1032;

/// The most names that the codes 0, 1, ... of a dataset can have: a code is stored in one byte.
constexpr hssize_t most_codes = 256;

/// A dataset that can be read safely: it exists, has the right kind and rank, and claims no more
/// data than its storage can hold.
struct OpenDataset {
  DatasetId id;
  TypeId type;
  std::vector<hsize_t> dims;
  hsize_t elements = 1;
};

hsize_t file_size(hid_t object) {
  const FileId file{check(H5Iget_file_id(object))};
  hsize_t bytes = 0;
  check(H5Fget_filesize(file.get(), &bytes));
  return bytes;
}

/// Throws Hdf5Error if the bytes that the file stores for the dataset are too few for its elements.
void check_size(const OpenDataset& dataset, const std::string& name, hsize_t element_size) {
  if (dataset.elements == 0) return;  // nothing will be read
  const PropertyId create{check(H5Dget_create_plist(dataset.id.get()))};
  const H5D_layout_t layout = H5Pget_layout(create.get());
  if ((layout != H5D_COMPACT && layout != H5D_CONTIGUOUS && layout != H5D_CHUNKED) ||
      check(H5Pget_external_count(create.get())) > 0) {
    throw Hdf5Error("dataset '" + name + "' keeps its data in another file");
  }
  const hsize_t stored = H5Dget_storage_size(dataset.id.get());
  const hsize_t factor = layout == H5D_CHUNKED ? most_unpacked : 1;
  const hsize_t claimed = size_of_type(dataset.type.get());
  // Stored data of up to this size is not compared with the size of the file: reading it takes
  // little memory, and HDF5 itself fails if the file ends earlier.
  constexpr hsize_t small = hsize_t{64} * 1024;
  const hsize_t width = std::max({claimed, element_size, hsize_t{1}});
  if ((stored > small && stored > file_size(dataset.id.get())) ||
      dataset.elements > stored * factor / claimed ||
      dataset.elements > std::numeric_limits<hsize_t>::max() / width) {
    throw Hdf5Error("dataset '" + name + "' claims more data than the file holds");
  }
}

OpenDataset open_dataset(const Group& group, hid_t id, const std::string& name, H5T_class_t kind,
                         std::size_t rank, hsize_t element_size) {
  if (!group.has(name)) throw Hdf5Error("dataset '" + name + "' is missing");
  OpenDataset dataset;
  dataset.id = DatasetId{check(H5Dopen2(id, name.c_str(), H5P_DEFAULT))};
  dataset.type = TypeId{check(H5Dget_type(dataset.id.get()))};
  const SpaceId space{check(H5Dget_space(dataset.id.get()))};
  const int dimensions = check(H5Sget_simple_extent_ndims(space.get()));
  if (H5Tget_class(dataset.type.get()) != kind || static_cast<std::size_t>(dimensions) != rank ||
      H5Sget_simple_extent_type(space.get()) == H5S_NULL) {
    throw Hdf5Error("dataset '" + name + "' has another type or shape than it should");
  }
  dataset.dims.resize(rank);
  if (rank > 0) check(H5Sget_simple_extent_dims(space.get(), dataset.dims.data(), nullptr));
  for (const hsize_t extent : dataset.dims) {
    if (extent != 0 && dataset.elements > std::numeric_limits<hsize_t>::max() / extent) {
      throw Hdf5Error("dataset '" + name + "' claims more data than the file holds");
    }
    dataset.elements *= extent;
  }
  check_size(dataset, name, element_size);
  return dataset;
}

}  // namespace

void Group::write_numbers(const std::string& name, const Types& types, Dimensions dimensions,
                          const void* values, const About& about,
                          std::span<const std::string> names) {
  DatasetId dataset =
      write_raw(id_.get(), name, types.file, types.memory, dimensions, values, about);
  if (!names.empty()) {
    const hsize_t count = names.size();
    const SpaceId list{check(H5Screate_simple(1, &count, nullptr))};
    write_attribute(dataset.get(), "values", list, names);
  }
  close(std::move(dataset));
}

/// All texts of a dataset are stored with the length of the longest.
void Group::write(const std::string& name, Dimensions dimensions,
                  std::span<const std::string> texts, const About& about) {
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
  close(write_raw(id_.get(), name, type.get(), type.get(), dimensions, bytes.data(), about));
}

void Group::read_numbers(const std::string& name, const Types& types, std::size_t rank,
                         const std::function<void*(std::span<const hsize_t>)>& room_for) const {
  const OpenDataset dataset =
      open_dataset(*this, id_.get(), name, types.kind, rank, size_of_type(types.memory));
  void* const room = room_for(dataset.dims);
  if (dataset.elements == 0) return;
  check(H5Dread(dataset.id.get(), types.memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, room));
}

std::vector<std::vector<double>> Group::read_rows(const std::string& name) const {
  std::vector<double> values;
  std::ptrdiff_t columns = 0;
  std::vector<std::vector<double>> rows;
  read_numbers(name, types_of(double{}), 2, [&](std::span<const hsize_t> dims) {
    if (dims[1] == 0 && dims[0] != 0) {
      throw Hdf5Error("dataset '" + name + "' has rows without columns");
    }
    columns = static_cast<std::ptrdiff_t>(dims[1]);
    values.resize(dims[0] * dims[1]);
    return values.data();
  });
  for (auto row = values.begin(); row != values.end(); row += columns) {
    rows.emplace_back(row, row + columns);
  }
  return rows;
}

std::vector<std::string> Group::read_texts(const std::string& name, std::size_t rank) const {
  const OpenDataset dataset = open_dataset(*this, id_.get(), name, H5T_STRING, rank, 1);
  if (check(H5Tis_variable_str(dataset.type.get())) > 0) {
    throw Hdf5Error("dataset '" + name + "' has text of variable length where it should be fixed");
  }
  const std::size_t length = size_of_type(dataset.type.get());
  std::string bytes(length * dataset.elements, '\0');
  if (!bytes.empty()) {
    check(
        H5Dread(dataset.id.get(), dataset.type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()));
  }
  std::vector<std::string> texts;
  texts.reserve(dataset.elements);
  for (std::size_t index = 0; index < dataset.elements; ++index) {
    const std::string_view cell = std::string_view{bytes}.substr(index * length, length);
    texts.push_back(valid_utf8(cell.substr(0, cell.find('\0'))));
  }
  return texts;
}

std::vector<std::string> Group::names_of_codes(const std::string& name) const {
  const DatasetId dataset{check(H5Dopen2(id_.get(), name.c_str(), H5P_DEFAULT))};
  if (check(H5Aexists(dataset.get(), "values")) == 0) {
    throw Hdf5Error("attribute 'values' is missing");
  }
  const AttributeId id{check(H5Aopen(dataset.get(), "values", H5P_DEFAULT))};
  const TypeId type{check(H5Aget_type(id.get()))};
  const SpaceId space{check(H5Aget_space(id.get()))};
  const hssize_t count = H5Sget_simple_extent_npoints(space.get());
  if (count < 0 || count > most_codes || H5Tget_class(type.get()) != H5T_STRING ||
      check(H5Tis_variable_str(type.get())) == 0) {
    throw Hdf5Error("attribute 'values' must be a list of names");
  }
  std::vector<char*> pointers(static_cast<std::size_t>(count), nullptr);
  if (pointers.empty()) return {};
  check(H5Aread(id.get(), type.get(), static_cast<void*>(pointers.data())));
  std::vector<std::string> texts;
  for (char* pointer : pointers) {
    texts.push_back(valid_utf8(pointer == nullptr ? "" : pointer));
  }
  check(H5Dvlen_reclaim(type.get(), space.get(), H5P_DEFAULT, static_cast<void*>(pointers.data())));
  return texts;
}

}  // namespace isoscale::results::hdf5
