#include "cli/line_buffer.h"

#include <utility>

namespace weir::cli {

std::vector<std::string> LineBuffer::Take(const char* data, std::size_t size) {
  std::size_t end = pending_.size();  // what came before holds no newline: it is searched once only
  pending_.append(data, size);
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (end = pending_.find('\n', end); end != std::string::npos; end = pending_.find('\n', begin)) {
    lines.push_back(pending_.substr(begin, end - begin));
    begin = end + 1;
  }
  pending_.erase(0, begin);
  if (pending_.size() > line_bytes_max_) lines.push_back(TakeRest());
  return lines;
}

std::string LineBuffer::TakeRest() {
  return std::exchange(pending_, {});
}

}  // namespace weir::cli
