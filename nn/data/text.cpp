#include "nn/data/text.h"

#include <algorithm>
#include <filesystem>

#include "core/calls/site_scope.h"
#include "core/error.h"
#include "nn/data/dataset.h"
#include "nn/file.h"
#include "ops/creation/creation.h"

namespace flow::data {

namespace {
void check_width(int64_t bytes) {
  if (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) return;
  throw InvalidArgument(str("[tokens] bytes_per_token must be 1, 2, 4 or 8; received ", bytes));
}
}  // namespace

std::string read_text_files(const std::vector<std::string>& paths,
                            const std::vector<std::string>& endings, Site site) {
  const SiteScope scope(site);
  namespace fs = std::filesystem;
  std::string text;
  for (const std::string& path : paths) {
    if (!fs::is_directory(path)) {
      text += nn::read_text(path);
      continue;
    }
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      const std::string ending = entry.path().extension().string();
      const bool is_wanted = std::find(endings.begin(), endings.end(), ending) != endings.end();
      if (entry.is_regular_file() && is_wanted) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const auto& file : files)
      text += nn::read_text(file.string());
  }
  return text;
}

std::vector<int64_t> read_tokens(const std::string& path, int64_t bytes_per_token, Site site) {
  const SiteScope scope(site);
  check_width(bytes_per_token);
  nn::InputFile file(path);
  const auto width = static_cast<size_t>(bytes_per_token);
  if (file.size() % width != 0) {
    throw BadFile(str("[tokens] ", path, " has ", file.size(),
                      " bytes, which is not a multiple of bytes_per_token = ", width,
                      "; give the width of the tokens in this file"));
  }
  std::vector<uint8_t> bytes(file.size());
  file.read(bytes.data(), bytes.size());
  std::vector<int64_t> tokens;
  tokens.reserve(bytes.size() / width);
  for (size_t at = 0; at < bytes.size(); at += width) {
    uint64_t token = 0;
    for (size_t i = 0; i < width; ++i)
      token |= uint64_t{bytes[at + i]} << (8 * i);
    if (token >> 63 != 0)
      throw BadFile(
          str("[tokens] ", path, " contains a number that exceeds int64; check bytes_per_token"));
    tokens.push_back(static_cast<int64_t>(token));
  }
  return tokens;
}

void write_tokens(const std::string& path, const std::vector<int64_t>& tokens,
                  int64_t bytes_per_token, Site site) {
  const SiteScope scope(site);
  check_width(bytes_per_token);
  std::vector<uint8_t> bytes;
  for (const int64_t token : tokens) {
    if (token < 0 || (bytes_per_token < 8 && token >> (8 * bytes_per_token) != 0)) {
      throw InvalidArgument(str("[tokens] token ", token, " does not fit into ", bytes_per_token,
                                " bytes; nothing was written; use more bytes per token"));
    }
    for (int64_t i = 0; i < bytes_per_token; ++i)
      bytes.push_back(static_cast<uint8_t>(token >> (8 * i)));
  }
  nn::OutputFile file(path);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

CharVocabulary::CharVocabulary(std::string_view text) {
  numbers_.fill(-1);
  for (const char c : text)
    numbers_[static_cast<unsigned char>(c)] = 0;
  for (size_t byte = 0; byte < numbers_.size(); ++byte) {
    if (numbers_[byte] < 0) continue;
    numbers_[byte] = size();
    characters_.push_back(static_cast<char>(byte));
  }
}

std::vector<int64_t> CharVocabulary::encode(std::string_view text, Site site) const {
  const SiteScope scope(site);
  std::vector<int64_t> tokens;
  tokens.reserve(text.size());
  for (const char c : text) {
    tokens.push_back(numbers_[static_cast<unsigned char>(c)]);
    if (tokens.back() < 0) {
      throw InvalidArgument(str(
          "[CharVocabulary] byte ", int{static_cast<unsigned char>(c)}, " is not one of the ",
          size(), " bytes of the vocabulary; build the vocabulary from a text that contains it"));
    }
  }
  return tokens;
}

std::string CharVocabulary::decode(const std::vector<int64_t>& tokens, Site site) const {
  const SiteScope scope(site);
  std::string text;
  for (const int64_t token : tokens) {
    check_sample("CharVocabulary", token, size());
    text.push_back(characters_[static_cast<size_t>(token)]);
  }
  return text;
}

TokenDataset::TokenDataset(const std::vector<int64_t>& tokens, int64_t length,
                           const TokenDatasetOptions& options, Site site)
    : length_(length), stride_(options.stride == 0 ? length : options.stride) {
  const SiteScope scope(site);
  const auto count = static_cast<int64_t>(tokens.size());
  if (length <= 0 || stride_ <= 0 || count <= length) {
    throw InvalidArgument(
        str("[TokenDataset] length and stride must be positive, and there must be "
            "more tokens than the length; received ",
            length, ", ", stride_, " and ", count, " tokens"));
  }
  tokens_ = std::make_shared<const std::vector<int64_t>>(tokens);
  size_ = (count - 1 - length) / stride_ + 1;
}

TokenDataset::Sample TokenDataset::operator[](PositionArg i) const {
  const SiteScope scope(i.site);
  const auto [x, y] = batch({i.value});
  return {x.select(0, 0), y.select(0, 0)};
}

TokenDataset::Sample TokenDataset::batch(const std::vector<int64_t>& indices) const {
  std::vector<int64_t> inputs, targets;
  for (const int64_t i : indices) {
    check_sample("TokenDataset", i, size());
    const auto first = tokens_->begin() + i * stride_;
    inputs.insert(inputs.end(), first, first + length_);
    targets.insert(targets.end(), first + 1, first + 1 + length_);
  }
  const Shape shape{static_cast<int64_t>(indices.size()), length_};
  return {tensor(inputs, shape), tensor(targets, shape)};
}

}  // namespace flow::data
